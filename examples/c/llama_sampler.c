/*
 * A sampler for llama.cpp that lets through what a constraint allows. It stands at the beginning of a chain of samplers, before everything that
 * changes probabilities; llama_main.c is the program around it, and 'make test-llama' runs it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "llama_main.h"
#include "maskwright.h"

typedef struct {
    mw_matcher *matcher;
    uint32_t *words;
    size_t word_count;
} constrained;

static llama_sampler *constrained_new(mw_matcher *matcher, size_t word_count);

static const char *constrained_name(const llama_sampler *sampler) {
    (void)sampler;
    return "maskwright";
}

static void constrained_accept(llama_sampler *sampler, llama_token token) {
    constrained *self = (constrained *)sampler->ctx;
    char message[200];
    if (mw_matcher_accept(self->matcher, (uint32_t)token, message, sizeof message) != MW_OK) stop("accept", message);
}

static void constrained_apply(llama_sampler *sampler, llama_token_data_array *candidates) {
    constrained *self = (constrained *)sampler->ctx;
    char message[200];
    size_t i;
    if (mw_matcher_fill_mask(self->matcher, self->words, self->word_count, message, sizeof message) != MW_OK) stop("mask", message);
    for (i = 0; i < candidates->size; i++) {
        uint32_t token = (uint32_t)candidates->data[i].id;
        int is_allowed = token / 32 < self->word_count && (self->words[token / 32] >> (token % 32) & 1);
        if (!is_allowed) candidates->data[i].logit = -INFINITY;
    }
}

static void constrained_reset(llama_sampler *sampler) {
    constrained *self = (constrained *)sampler->ctx;
    char message[200];
    if (mw_matcher_reset(self->matcher, message, sizeof message) != MW_OK) stop("reset", message);
    /* An answer is never cut off: when tokens run short, only what leads to its end is allowed. */
    if (mw_matcher_set_budget(self->matcher, ANSWER_TOKENS, message, sizeof message) != MW_OK) stop("budget", message);
}

static llama_sampler *constrained_clone(const llama_sampler *sampler) {
    const constrained *self = (const constrained *)sampler->ctx;
    mw_matcher *copy;
    char message[200];
    if (mw_matcher_fork(self->matcher, &copy, message, sizeof message) != MW_OK) stop("clone", message);
    return constrained_new(copy, self->word_count);
}

static void constrained_free(llama_sampler *sampler) {
    constrained *self = (constrained *)sampler->ctx;
    mw_matcher_free(self->matcher);
    free(self->words);
    free(self);
}

static const struct llama_sampler_i constrained_functions = {
    constrained_name, constrained_accept, constrained_apply, constrained_reset, constrained_clone, constrained_free, {NULL},
};

/* The sampler owns the matcher. */
static llama_sampler *constrained_new(mw_matcher *matcher, size_t word_count) {
    constrained *self = (constrained *)malloc(sizeof *self);
    if (self == NULL) stop("memory", "there is none");
    self->matcher = matcher;
    self->words = (uint32_t *)calloc(word_count, sizeof *self->words);
    self->word_count = word_count;
    if (self->words == NULL) stop("memory", "there is none");
    return llama_sampler_init(&constrained_functions, self);
}

/* The tokenizer of the model's file, and a matcher for the schema. */
llama_sampler *new_sampler(const char *model, const llama_vocab *vocab, const char *schema) {
    mw_vocabulary_options options = MW_VOCABULARY_OPTIONS_INIT;
    mw_vocabulary *vocabulary;
    mw_compiler *compiler;
    mw_compiled_constraint *constraint;
    mw_matcher *matcher;
    llama_sampler *sampler;
    char message[1000];
    options.size = (size_t)llama_vocab_n_tokens(vocab);
    if (mw_vocabulary_load(model, &options, &vocabulary, message, sizeof message) != MW_OK) stop("vocabulary", message);
    if (mw_compiler_new(vocabulary, NULL, &compiler, message, sizeof message) != MW_OK) stop("compiler", message);
    if (mw_compile(compiler, MW_JSON_SCHEMA, schema, strlen(schema), &constraint, message, sizeof message) != MW_OK) stop("schema", message);
    if (mw_matcher_new(constraint, &matcher, message, sizeof message) != MW_OK) stop("matcher", message);
    sampler = constrained_new(matcher, mw_vocabulary_mask_words(vocabulary));
    constrained_reset(sampler);
    /* The matcher keeps what it needs. */
    mw_compiled_constraint_free(constraint);
    mw_compiler_free(compiler);
    mw_vocabulary_free(vocabulary);
    return sampler;
}
