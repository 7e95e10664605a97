class ReasoningParser:
    def __init__(self, model_type, stream_reasoning, tokenizer):
        self.detector = self

    @staticmethod
    def get_think_end_token_ids(tokenizer):
        return tokenizer.encode("</think>", add_special_tokens=False)
