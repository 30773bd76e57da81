"""What is known of a rule: a proof on symbolic shapes, or tests on generated instances; a wrong one is refused."""
