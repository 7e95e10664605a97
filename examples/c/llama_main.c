/*
 * A model of llama.cpp answers a question, and the answer satisfies a JSON Schema. What sees to that is a sampler at the beginning of a chain:
 *
 *     chain = constraint -> temperature -> choose by chance
 *
 * There are two of them: llama_sampler.c has the functions of maskwright.h, and llg_sampler.c those of llguidance.h. 'make test-llama' runs both:
 *
 *     llama_sampler MODEL.gguf FOLDER-WITH-BACKENDS SCHEMA PROMPT [SEED]
 */
#include "llama_main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stop(const char *what, const char *message) {
    fprintf(stderr, "%s: %s\n", what, message);
    exit(1);
}

static void quiet(int level, const char *text, void *data) {
    (void)level;
    (void)text;
    (void)data;
}

enum { PROMPT_TOKENS = 200 };

int main(int count, char **arguments) {
    llama_model *model;
    llama_context *context;
    const llama_vocab *vocab;
    llama_sampler *chain, *first, *copy;
    llama_token tokens[PROMPT_TOKENS], token;
    char prompt[2000], piece[256];
    int32_t prompt_length, length, written;
    if (count < 5) stop("usage", "llama_sampler MODEL.gguf FOLDER-WITH-BACKENDS SCHEMA PROMPT [SEED]");

    llama_log_set(quiet, NULL);
    ggml_backend_load_all_from_path(arguments[2]);
    llama_backend_init();
    model = llama_model_load_from_file(arguments[1], llama_model_default_params());
    if (model == NULL) stop("model", "cannot be loaded");
    context = llama_init_from_model(model, llama_context_default_params());
    if (context == NULL) stop("context", "cannot be made");
    /* The threads of ggml wait for each other without sleeping, so more of them than idle processors are slower than one. */
    llama_set_n_threads(context, 1, 1);
    vocab = llama_model_get_vocab(model);

    first = new_sampler(arguments[1], vocab, arguments[3]);
    /* llama.cpp clones samplers when requests are forked. */
    copy = llama_sampler_clone(first);
    llama_sampler_reset(copy);
    llama_sampler_free(first);
    chain = llama_sampler_chain_init(llama_sampler_chain_default_params());
    llama_sampler_chain_add(chain, copy);
    llama_sampler_chain_add(chain, llama_sampler_init_temp(0.3f));
    llama_sampler_chain_add(chain, llama_sampler_init_dist(count > 5 ? (uint32_t)atoi(arguments[5]) : 1));

    snprintf(prompt, sizeof prompt, "<|im_start|>user\n%s<|im_end|>\n<|im_start|>assistant\n", arguments[4]);
    prompt_length = llama_tokenize(vocab, prompt, (int32_t)strlen(prompt), tokens, PROMPT_TOKENS, true, true);
    if (prompt_length < 0) stop("prompt", "is too long");
    if (llama_decode(context, llama_batch_get_one(tokens, prompt_length)) != 0) stop("decode", "failed");
    for (written = 0; written < ANSWER_TOKENS; written++) {
        /* Samples from the logits of the last token, and lets the chain accept the token. */
        token = llama_sampler_sample(chain, context, -1);
        if (llama_vocab_is_eog(vocab, token)) break;
        length = llama_token_to_piece(vocab, token, piece, sizeof piece, 0, false);
        if (length < 0) stop("token", "has a long text");
        fwrite(piece, 1, (size_t)length, stdout);
        if (llama_decode(context, llama_batch_get_one(&token, 1)) != 0) stop("decode", "failed");
    }
    printf("\n");
    if (written == ANSWER_TOKENS) stop("answer", "was cut off");
    llama_sampler_free(chain);
    llama_free(context);
    llama_model_free(model);
    llama_backend_free();
    return 0;
}
