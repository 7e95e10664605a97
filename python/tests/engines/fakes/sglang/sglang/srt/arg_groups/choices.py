GRAMMAR_BACKEND_CHOICES = ["xgrammar", "outlines", "llguidance", "none"]
