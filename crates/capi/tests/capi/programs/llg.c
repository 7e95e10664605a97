/* What programs do that were written for llguidance: llama.cpp with matchers, others with constraints. */
#include "llguidance.h"
#include "small.h"

static size_t tokenize(const void *data, const uint8_t *bytes, size_t length, uint32_t *tokens, size_t capacity) {
    return small_encode(data, (const char *)bytes, length, tokens, capacity);
}

/* The tokens of small.h as llguidance wants them: special ones behind a byte FF. */
static LlgTokenizerInit tokenizer_init(void) {
    static uint8_t bytes[400];
    static uint32_t lengths[SMALL_COUNT];
    LlgTokenizerInit init;
    mw_tokens tokens = small_tokens();
    size_t at = 0, from = 0, i;
    memset(&init, 0, sizeof init);
    for (i = 0; i < SMALL_COUNT; i++) {
        if (tokens.kinds[i] == MW_TOKEN_SPECIAL) bytes[at++] = 0xFF;
        memcpy(bytes + at, tokens.bytes + from, tokens.lengths[i]);
        lengths[i] = tokens.lengths[i] + (tokens.kinds[i] == MW_TOKEN_SPECIAL ? 1 : 0);
        at += tokens.lengths[i];
        from += tokens.lengths[i];
    }
    init.vocab_size = SMALL_COUNT;
    init.tok_eos = SMALL_END;
    init.token_lens = lengths;
    init.token_bytes = bytes;
    init.tokenize_assumes_string = true;
    init.tokenize_fn = tokenize;
    init.tokenize_user_data = (const void *)small_words;
    return init;
}

static LlgTokenizer *new_tokenizer(void) {
    LlgTokenizerInit init = tokenizer_init();
    LlgTokenizer *tokenizer = llg_new_tokenizer(&init, message, sizeof message);
    CHECK(tokenizer != NULL);
    return tokenizer;
}

/* As llama.cpp's sampler: apply, accept, clone, reset. */
static void sampler(const LlgTokenizer *tokenizer) {
    LlgConstraintInit init;
    LlgMatcher *matcher, *copy;
    const uint32_t *mask;
    uint32_t i, own[SMALL_MASK];
    llg_constraint_init_set_defaults(&init, tokenizer);
    CHECK(init.tokenizer == tokenizer && !init.ff_tokens_ok && init.limits.max_items_in_row == 2000 && init.limits.verbose_errors);
    matcher = llg_new_matcher(&init, "lark", "%llguidance {}\nstart: \"the answer is \" (\"yes\" | \"no\")");
    CHECK(llg_matcher_get_error(matcher) == NULL && !llg_matcher_is_error(matcher));
    CHECK(llg_matcher_get_mask_byte_size(matcher) == (SMALL_COUNT + 31) / 32 * 4);
    CHECK(llg_matcher_get_mask(matcher) == NULL);
    CHECK(llg_matcher_compute_mask(matcher) == 0);
    mask = llg_matcher_get_mask(matcher);
    for (i = 0; i < SMALL_COUNT; i++) CHECK(allows(mask, i) == (i == word("the ") || i == word("t")));
    CHECK(llg_matcher_consume_token(matcher, word("the ")) == 0);
    CHECK(llg_matcher_get_mask(matcher) == NULL);
    CHECK(llg_matcher_consume_token(matcher, word("answer")) == 0 && llg_matcher_consume_token(matcher, word(" is ")) == 0);
    copy = llg_clone_matcher(matcher);
    CHECK(llg_matcher_consume_token(matcher, word("yes")) == 0);
    CHECK(llg_matcher_is_accepting(matcher) && llg_matcher_is_stopped(matcher));
    CHECK(!llg_matcher_is_accepting(copy) && !llg_matcher_is_stopped(copy));
    CHECK(llg_matcher_compute_mask_into(matcher, own, sizeof own) == 0);
    for (i = 0; i < SMALL_COUNT; i++) CHECK(allows(own, i) == (i == SMALL_END));
    /* The end may come more than once, and can be undone. */
    for (i = 0; i < 3; i++) {
        CHECK(llg_matcher_consume_token(matcher, SMALL_END) == 0 && llg_matcher_is_stopped(matcher));
        CHECK(llg_matcher_compute_mask_into(matcher, own, sizeof own) == 0 && allows(own, SMALL_END));
    }
    CHECK(llg_matcher_rollback(matcher, 4) == 0 && !llg_matcher_is_accepting(matcher));
    CHECK(llg_matcher_consume_token(matcher, word("no")) == 0);
    CHECK(llg_matcher_reset(matcher) == 0);
    CHECK(llg_matcher_compute_mask(matcher) == 0 && allows(llg_matcher_get_mask(matcher), word("the ")));
    llg_free_matcher(matcher);
    CHECK(llg_matcher_consume_token(copy, word("no")) == 0);
    llg_free_matcher(copy);
    /* Nothing is ignored in front of a text unless its grammar says so. */
    matcher = llg_new_matcher(&init, "lark", "start: \"yes\" \"no\"\n%ignore \" is \"");
    CHECK(llg_matcher_compute_mask(matcher) == 0 && allows(llg_matcher_get_mask(matcher), word("yes")) && !allows(llg_matcher_get_mask(matcher), word(" is ")));
    CHECK(llg_matcher_consume_token(matcher, word("yes")) == 0);
    CHECK(llg_matcher_compute_mask(matcher) == 0 && allows(llg_matcher_get_mask(matcher), word(" is ")));
    llg_free_matcher(matcher);
}

static void errors(const LlgTokenizer *tokenizer) {
    LlgConstraintInit init;
    LlgMatcher *matcher, *copy;
    LlgConstraint *constraint;
    const char *error;
    uint32_t own[SMALL_MASK];
    char said[200];
    llg_constraint_init_set_defaults(&init, tokenizer);
    /* A wrong grammar is an error inside. */
    matcher = llg_new_matcher(&init, "lark", "start: missing");
    CHECK(matcher != NULL && llg_matcher_is_error(matcher) && strstr(llg_matcher_get_error(matcher), "missing") != NULL);
    CHECK(llg_matcher_compute_mask(matcher) == -1 && llg_matcher_reset(matcher) == -1 && llg_matcher_is_stopped(matcher));
    llg_free_matcher(matcher);
    matcher = llg_new_matcher(&init, "gbnf", "root ::= \"a\"");
    CHECK(strstr(llg_matcher_get_error(matcher), "gbnf") != NULL);
    llg_free_matcher(matcher);
    matcher = llg_new_matcher(&init, "regex", "\xFF");
    CHECK(strstr(llg_matcher_get_error(matcher), "data is not UTF-8") != NULL);
    llg_free_matcher(matcher);
    matcher = llg_new_matcher(&init, NULL, "a");
    CHECK(llg_matcher_is_error(matcher));
    llg_free_matcher(matcher);
    matcher = llg_new_matcher(NULL, "regex", "a");
    CHECK(strstr(llg_matcher_get_error(matcher), "init is null") != NULL && llg_matcher_get_mask_byte_size(matcher) == 0);
    llg_free_matcher(matcher);
    init.tokenizer = NULL;
    matcher = llg_new_matcher(&init, "regex", "a");
    CHECK(strstr(llg_matcher_get_error(matcher), "init.tokenizer is null") != NULL);
    llg_free_matcher(matcher);

    /* The first error stays, also in copies. */
    llg_constraint_init_set_defaults(&init, tokenizer);
    matcher = llg_new_matcher(&init, "regex", "yes");
    CHECK(llg_matcher_compute_mask(matcher) == 0);
    CHECK(llg_matcher_consume_token(matcher, UINT32_MAX) == -1);
    error = llg_matcher_get_error(matcher);
    CHECK(error != NULL && strstr(error, "there is no token") != NULL);
    CHECK(llg_matcher_consume_token(matcher, word("yes")) == -1 && llg_matcher_rollback(matcher, 0) == -1 && llg_matcher_reset(matcher) == -1);
    CHECK(llg_matcher_get_mask(matcher) == NULL && llg_matcher_get_error(matcher) == error);
    copy = llg_clone_matcher(matcher);
    CHECK(llg_matcher_is_error(copy) && strcmp(llg_matcher_get_error(copy), error) == 0);
    llg_free_matcher(copy);
    llg_free_matcher(matcher);
    matcher = llg_new_matcher(&init, "regex", "yes");
    CHECK(llg_matcher_compute_mask_into(matcher, own, sizeof own - 1) == -1);
    CHECK(strstr(llg_matcher_get_error(matcher), "mask_byte_len is 19 and must be 20") != NULL);
    llg_free_matcher(matcher);

    CHECK(llg_validate_grammar(&init, "regex", "yes", said, sizeof said) == 0 && said[0] == 0);
    CHECK(llg_validate_grammar(&init, "json", "{\"type\": 1}", said, sizeof said) == -1 && strlen(said) > 10);
    CHECK(llg_validate_grammar(&init, "regex", "(", NULL, 0) == -1);

    /* Null handles. */
    CHECK(llg_matcher_get_error(NULL) != NULL && llg_matcher_is_error(NULL) && llg_matcher_is_stopped(NULL));
    CHECK(llg_matcher_compute_mask(NULL) == -1 && llg_matcher_get_mask(NULL) == NULL && !llg_matcher_is_accepting(NULL));
    CHECK(llg_clone_tokenizer(NULL) == NULL && llg_new_tokenizer(NULL, said, sizeof said) == NULL);
    CHECK(strstr(said, "tok_init is null") != NULL);
    CHECK(llg_tokenize_bytes(NULL, (const uint8_t *)"a", 1, NULL, 0) == 0);
    copy = llg_clone_matcher(NULL);
    CHECK(llg_matcher_is_error(copy));
    llg_free_matcher(copy);
    constraint = llg_clone_constraint(NULL);
    CHECK(llg_get_error(constraint) != NULL && llg_get_error(NULL) != NULL && llg_is_stopped(NULL));
    CHECK(llg_compute_mask(NULL, NULL) == -1 && llg_commit_token(constraint, 0, NULL) == -1);
    llg_free_constraint(constraint);
    llg_free_matcher(NULL);
    llg_free_constraint(NULL);
    llg_free_tokenizer(NULL);
}

/* Validation, forced tokens, and texts as tokens. */
static void tokens(const LlgTokenizer *tokenizer) {
    LlgConstraintInit init;
    LlgMatcher *matcher;
    uint32_t list[8];
    char text[64];
    llg_constraint_init_set_defaults(&init, tokenizer);
    matcher = llg_new_matcher(&init, "regex", "the answer is (yes|no)");
    CHECK(llg_matcher_compute_ff_tokens(matcher, list, COUNT(list)) >= 1 && list[0] == word("the "));
    list[0] = word("the ");
    list[1] = word("answer");
    list[2] = word("yes");
    CHECK(llg_matcher_validate_tokens(matcher, list, 3) == 2);
    CHECK(llg_matcher_consume_tokens(matcher, list, 2) == 0);
    llg_free_matcher(matcher);

    CHECK(llg_tokenize_bytes(tokenizer, (const uint8_t *)"yes, no", 7, list, COUNT(list)) == 4);
    CHECK(list[0] == word("yes") && list[3] == word("no"));
    CHECK(llg_tokenize_bytes(tokenizer, (const uint8_t *)"yes, no", 7, NULL, 0) == 4);
    /* Not UTF-8: the longest tokens that fit, and what has none is left out. */
    CHECK(llg_tokenize_bytes(tokenizer, (const uint8_t *)"no\xC3 \xC3\xA9", 6, list, COUNT(list)) == 3);
    CHECK(list[0] == word("no") && list[1] == word(" ") && list[2] == word("\xC3\xA9"));
    CHECK(llg_tokenize_bytes_marker(tokenizer, (const uint8_t *)"\xFF<tool>no\xFF[65]\xFF<x>\xFF", 19, list, COUNT(list)) == 6);
    CHECK(list[0] == SMALL_TOOL && list[1] == word("no") && list[2] == 65 && list[3] == word("<"));
    list[2] = SMALL_END;
    CHECK(llg_decode_tokens(tokenizer, list, 3, text, sizeof text, LLG_DECODE_NONE) == 3 && strcmp(text, "no") == 0);
    CHECK(llg_decode_tokens(tokenizer, list, 3, text, sizeof text, LLG_DECODE_INCLUDE_SPECIAL) == 14 && strcmp(text, "<tool>no<end>") == 0);
    CHECK(llg_decode_tokens(tokenizer, list, 3, text, 4, LLG_DECODE_INCLUDE_SPECIAL) == 14 && strcmp(text, "<to") == 0);
    CHECK(llg_stringify_tokens(tokenizer, list, 3, text, sizeof text) == 18 && strcmp(text, "<tool> \"no\" <end>") == 0);
    CHECK(llg_stringify_tokens(tokenizer, list, 3, NULL, 0) == 18);
}

/* As servers with the older interface do: mask, token, mask, token. */
static void constraints(const LlgTokenizer *tokenizer) {
    LlgConstraintInit init;
    LlgConstraint *constraint, *copy;
    LlgMaskResult mask;
    LlgCommitResult commit;
    llg_constraint_init_set_defaults(&init, tokenizer);
    init.ff_tokens_ok = true;
    constraint = llg_new_constraint_regex(&init, "(yes|no) the answer is (yes|no)");
    CHECK(llg_get_error(constraint) == NULL && !llg_is_stopped(constraint));
    CHECK(llg_compute_mask(constraint, &mask) == 0 && !mask.is_stop && mask.sample_mask != NULL && allows(mask.sample_mask, word("yes")));
    CHECK(llg_commit_token(constraint, word("yes"), &commit) == 0 && !commit.is_stop);
    CHECK(commit.n_tokens >= 3 && commit.tokens[0] == word("yes") && commit.tokens[1] == word(" ") && commit.tokens[2] == word("the "));
    copy = llg_clone_constraint(constraint);
    while (llg_compute_mask(constraint, &mask) == 0 && !mask.is_stop) {
        uint32_t token = 0;
        while (!allows(mask.sample_mask, token)) token++;
        CHECK(llg_commit_token(constraint, token, &commit) == 0 && commit.n_tokens >= 1);
    }
    CHECK(llg_get_error(constraint) == NULL && mask.is_stop && mask.sample_mask == NULL && llg_is_stopped(constraint));
    CHECK(llg_commit_token(constraint, SMALL_END, &commit) == 0 && commit.is_stop && commit.n_tokens == 0);
    CHECK(llg_flush_logs(constraint)[0] == 0 && llg_get_temperature(constraint) < 1e-9f);
    llg_free_constraint(constraint);
    CHECK(!llg_is_stopped(copy) && llg_compute_mask(copy, &mask) == 0 && !mask.is_stop);
    CHECK(llg_commit_token(copy, word("q"), &commit) == -1 && llg_get_error(copy) != NULL && llg_is_stopped(copy));
    CHECK(llg_compute_mask(copy, &mask) == -1);
    llg_free_constraint(copy);

    init.ff_tokens_ok = false;
    constraint = llg_new_constraint(&init, "{\"grammars\": [{\"json_schema\": {\"const\": true}}]}");
    CHECK(llg_compute_mask(constraint, &mask) == 0 && allows(mask.sample_mask, word("true")));
    CHECK(llg_commit_token(constraint, word("t"), &commit) == 0 && commit.n_tokens == 1);
    llg_free_constraint(constraint);
    constraint = llg_new_constraint_json(&init, "{\"type\": \"boolean\"}");
    CHECK(llg_compute_mask(constraint, &mask) == 0 && allows(mask.sample_mask, word("false")) && !allows(mask.sample_mask, word("yes")));
    llg_free_constraint(constraint);
    constraint = llg_new_constraint_lark(&init, "start: \"no\"");
    CHECK(llg_compute_mask(constraint, &mask) == 0 && allows(mask.sample_mask, word("no")));
    llg_free_constraint(constraint);
    constraint = llg_new_constraint_any(&init, "json_object", "");
    CHECK(llg_compute_mask(constraint, &mask) == 0 && allows(mask.sample_mask, word("{\"")));
    llg_free_constraint(constraint);
}

/* Several tokens that end a text, and versions of the struct. */
static void second_version(void) {
    LlgTokenizerInit first = tokenizer_init();
    LlgTokenizerInitV2 init;
    LlgTokenizer *tokenizer;
    LlgConstraintInit with;
    LlgMatcher *matcher;
    LlgToken extra[] = {SMALL_TOOL};
    memset(&init, 0, sizeof init);
    init.vocab_size = first.vocab_size;
    init.tok_eos = first.tok_eos;
    init.token_lens = first.token_lens;
    init.token_bytes = first.token_bytes;
    init.use_approximate_greedy_tokenize_fn = true;
    init.tok_eos_extra = extra;
    init.tok_eos_extra_count = 1;
    CHECK(llg_new_tokenizer_v2(&init, message, sizeof message) == NULL && strstr(message, "sizeof(LlgTokenizerInitV2)") != NULL);
    init.struct_size = sizeof init;
    tokenizer = llg_new_tokenizer_v2(&init, message, sizeof message);
    CHECK(tokenizer != NULL);
    llg_constraint_init_set_defaults(&with, tokenizer);
    matcher = llg_new_matcher(&with, "regex", "");
    CHECK(llg_matcher_compute_mask(matcher) == 0);
    CHECK(allows(llg_matcher_get_mask(matcher), SMALL_END) && allows(llg_matcher_get_mask(matcher), SMALL_TOOL));
    llg_free_matcher(matcher);
    llg_free_tokenizer(tokenizer);
    extra[0] = SMALL_COUNT;
    CHECK(llg_new_tokenizer_v2(&init, message, sizeof message) == NULL && strstr(message, "142") != NULL);
    init.struct_size = offsetof(LlgTokenizerInitV2, tok_eos_extra);
    tokenizer = llg_new_tokenizer_v2(&init, message, sizeof message);
    CHECK(tokenizer != NULL);
    llg_free_tokenizer(tokenizer);
    init.struct_size = sizeof init;
    init.tokenizer_json = "{";
    CHECK(llg_new_tokenizer_v2(&init, message, sizeof message) == NULL && strstr(message, "tokenizer.json is broken") != NULL);
}

/* Programs that were compiled with llguidance's own header find everything in its place. */
static void layout(void) {
    if (sizeof(void *) != 8) return;
    CHECK(sizeof(LlgParserLimits) == 56 && offsetof(LlgParserLimits, verbose_errors) == 49);
    CHECK(sizeof(LlgConstraintInit) == 80 && offsetof(LlgConstraintInit, ff_tokens_ok) == 16 && offsetof(LlgConstraintInit, limits) == 24);
    CHECK(sizeof(LlgTokenizerInit) == 72 && offsetof(LlgTokenizerInit, tokenizer_json) == 24 && offsetof(LlgTokenizerInit, tokenize_fn) == 40);
    CHECK(offsetof(LlgTokenizerInit, tokenize_user_data) == 56 && offsetof(LlgTokenizerInit, slices) == 64);
    CHECK(sizeof(LlgTokenizerInitV2) == 96 && offsetof(LlgTokenizerInitV2, tok_eos_extra) == 80 && offsetof(LlgTokenizerInitV2, tok_eos_extra_count) == 88);
    CHECK(sizeof(LlgMaskResult) == 16 && offsetof(LlgMaskResult, is_stop) == 12);
    CHECK(sizeof(LlgCommitResult) == 16 && offsetof(LlgCommitResult, is_stop) == 12);
}

int main(void) {
    LlgTokenizer *tokenizer = new_tokenizer(), *copy = llg_clone_tokenizer(tokenizer);
    CHECK(strcmp(llg_get_version(), mw_version()) == 0);
    llg_free_tokenizer(tokenizer);
    layout();
    sampler(copy);
    errors(copy);
    tokens(copy);
    constraints(copy);
    second_version();
    llg_free_tokenizer(copy);
    printf("all is well\n");
    return 0;
}
