"""HTML pages that show how a model translates a sentence, written by processes with limits, which can be killed."""
