class VLLMValidationError(ValueError):
    """A request is refused with status 400."""
