"""HTML pages that show how a model translates a sentence. Separate processes with limits write these pages."""
