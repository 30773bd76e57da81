"""What is loaded as a plug-in is not imported by pytest: that would register it for all tests."""

collect_ignore = ["woofles"]
