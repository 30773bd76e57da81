"""Passes that let values be written where others have them: over an operand, or as part of a larger tensor."""
