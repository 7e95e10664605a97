def traverse_tree(retrieve_next_token, retrieve_next_sibling, draft_tokens, grammar, allocate_token_bitmask, vocab_size=None):
    """Fill the row of every node that the grammar lets one come to, by accepting and rolling back."""
    mask = allocate_token_bitmask

    def visit(node, parent):
        token = int(draft_tokens[node])
        fits = parent is None or int(mask[parent][token // 32]) >> (token % 32) & 1
        if fits:
            if parent is not None:
                grammar.accept_token(token)
            if not grammar.is_terminated():
                grammar.fill_vocab_mask(mask, node)
                if retrieve_next_token[node] != -1:
                    visit(int(retrieve_next_token[node]), node)
            if parent is not None:
                grammar.rollback(1)
        if retrieve_next_sibling[node] != -1:
            visit(int(retrieve_next_sibling[node]), parent)

    visit(0, None)
