/*
 * The sampler of llama_sampler.c with the functions of llguidance.h, in the way llama.cpp's own integration of llguidance uses them: the tokens are taken from
 * llama.cpp one by one, and text is cut by a function of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "llama_main.h"
#include "llguidance.h"

static const char *llg_name(const llama_sampler *sampler) {
    (void)sampler;
    return "llguidance";
}

static void llg_accept(llama_sampler *sampler, llama_token token) {
    LlgMatcher *matcher = (LlgMatcher *)sampler->ctx;
    if (llg_matcher_consume_token(matcher, (uint32_t)token) != 0) stop("accept", llg_matcher_get_error(matcher));
}

static void llg_apply(llama_sampler *sampler, llama_token_data_array *candidates) {
    LlgMatcher *matcher = (LlgMatcher *)sampler->ctx;
    const uint32_t *mask;
    size_t i;
    if (llg_matcher_compute_mask(matcher) != 0) stop("mask", llg_matcher_get_error(matcher));
    mask = llg_matcher_get_mask(matcher);
    for (i = 0; i < candidates->size; i++) {
        uint32_t token = (uint32_t)candidates->data[i].id;
        if ((mask[token / 32] >> (token % 32) & 1) == 0) candidates->data[i].logit = -INFINITY;
    }
}

static void llg_reset(llama_sampler *sampler) {
    LlgMatcher *matcher = (LlgMatcher *)sampler->ctx;
    if (llg_matcher_reset(matcher) != 0) stop("reset", llg_matcher_get_error(matcher));
}

static llama_sampler *llg_clone(const llama_sampler *sampler);

static void llg_free(llama_sampler *sampler) {
    llg_free_matcher((LlgMatcher *)sampler->ctx);
}

static const struct llama_sampler_i llg_functions = {llg_name, llg_accept, llg_apply, llg_reset, llg_clone, llg_free, {NULL}};

static llama_sampler *llg_clone(const llama_sampler *sampler) {
    return llama_sampler_init(&llg_functions, llg_clone_matcher((const LlgMatcher *)sampler->ctx));
}

static size_t tokenize(const void *vocab, const uint8_t *bytes, size_t length, uint32_t *tokens, size_t capacity) {
    int32_t count = llama_tokenize((const llama_vocab *)vocab, (const char *)bytes, (int32_t)length, (llama_token *)tokens,
                                   (int32_t)capacity, false, false);
    /* Where there is too little room, it is minus what is needed. */
    return (size_t)(count < 0 ? -count : count);
}

/* The bytes of every token; a special one is a byte FF and its name. */
static LlgTokenizer *new_tokenizer(const llama_vocab *vocab) {
    enum { LONGEST = 512 };
    LlgTokenizerInit init;
    LlgTokenizer *tokenizer;
    char error[200];
    size_t count = (size_t)llama_vocab_n_tokens(vocab), at = 0, i;
    uint32_t *lengths = (uint32_t *)calloc(count, sizeof *lengths);
    char *bytes = (char *)malloc(count * LONGEST);
    if (lengths == NULL || bytes == NULL) stop("memory", "there is none");
    for (i = 0; i < count; i++) {
        int32_t length = llama_token_to_piece(vocab, (llama_token)i, bytes + at, LONGEST, 0, false);
        if (length == 0) {
            length = llama_token_to_piece(vocab, (llama_token)i, bytes + at + 1, LONGEST - 1, 0, true);
            bytes[at] = (char)0xFF;
            length += length > 0;
        }
        if (length < 0) stop("token", "has a long text");
        lengths[i] = (uint32_t)length;
        at += (size_t)length;
    }
    memset(&init, 0, sizeof init);
    init.vocab_size = (uint32_t)count;
    init.tok_eos = (uint32_t)llama_vocab_eot(vocab);
    init.token_lens = lengths;
    init.token_bytes = (const uint8_t *)bytes;
    init.tokenize_assumes_string = true;
    init.tokenize_fn = tokenize;
    init.tokenize_user_data = vocab;
    tokenizer = llg_new_tokenizer(&init, error, sizeof error);
    if (tokenizer == NULL) stop("tokenizer", error);
    free(lengths);
    free(bytes);
    return tokenizer;
}

llama_sampler *new_sampler(const char *model_path, const llama_vocab *vocab, const char *schema) {
    LlgTokenizer *tokenizer = new_tokenizer(vocab);
    LlgConstraintInit init;
    LlgMatcher *matcher;
    (void)model_path;
    llg_constraint_init_set_defaults(&init, tokenizer);
    matcher = llg_new_matcher(&init, "json_schema", schema);
    if (llg_matcher_get_error(matcher) != NULL) stop("schema", llg_matcher_get_error(matcher));
    llg_free_tokenizer(tokenizer);
    return llama_sampler_init(&llg_functions, matcher);
}
