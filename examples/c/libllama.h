/*
 * What the example needs of llama.cpp's library, declared by hand, so that it runs against a libllama without its headers. A program of your own
 * includes llama.h.
 *
 * Structs that are only handed from one function to the next are declared as memory that is large enough for every version of them: they are returned through a pointer and
 * passed in memory, so nobody minds if there is more of it.
 */
#ifndef LIBLLAMA_H
#define LIBLLAMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int32_t llama_token;

typedef struct llama_model llama_model;
typedef struct llama_context llama_context;
typedef struct llama_vocab llama_vocab;

typedef struct { uint64_t memory[64]; } llama_model_params;
typedef struct { uint64_t memory[64]; } llama_context_params;
typedef struct { uint64_t memory[32]; } llama_batch;
typedef struct { bool no_perf; } llama_sampler_chain_params;

/* A candidate for the next token. */
typedef struct {
    llama_token id;
    float logit;
    float p;
} llama_token_data;

typedef struct {
    llama_token_data *data;
    size_t size;
    int64_t selected;
    bool sorted;
} llama_token_data_array;

/* A sampler: some state, and functions that know what to do with it. */
typedef struct llama_sampler {
    const struct llama_sampler_i *iface;
    void *ctx;
} llama_sampler;

struct llama_sampler_i {
    const char *(*name)(const llama_sampler *sampler);
    void (*accept)(llama_sampler *sampler, llama_token token);
    void (*apply)(llama_sampler *sampler, llama_token_data_array *candidates);
    void (*reset)(llama_sampler *sampler);
    llama_sampler *(*clone)(const llama_sampler *sampler);
    void (*free)(llama_sampler *sampler);
    /* Functions for samplers that run on a device; how many there are depends on the version. */
    void *none[10];
};

void ggml_backend_load_all_from_path(const char *folder);

void llama_backend_init(void);
void llama_backend_free(void);
void llama_log_set(void (*log)(int level, const char *text, void *data), void *data);

llama_model_params llama_model_default_params(void);
llama_context_params llama_context_default_params(void);
llama_model *llama_model_load_from_file(const char *path, llama_model_params params);
void llama_model_free(llama_model *model);
const llama_vocab *llama_model_get_vocab(const llama_model *model);
llama_context *llama_init_from_model(llama_model *model, llama_context_params params);
void llama_set_n_threads(llama_context *context, int32_t n_threads, int32_t n_threads_batch);
void llama_free(llama_context *context);

int32_t llama_vocab_n_tokens(const llama_vocab *vocab);
llama_token llama_vocab_eot(const llama_vocab *vocab);
bool llama_vocab_is_eog(const llama_vocab *vocab, llama_token token);
int32_t llama_tokenize(const llama_vocab *vocab, const char *text, int32_t text_length, llama_token *tokens, int32_t capacity, bool add_special,
                       bool parse_special);
int32_t llama_token_to_piece(const llama_vocab *vocab, llama_token token, char *piece, int32_t capacity, int32_t lstrip, bool special);

llama_batch llama_batch_get_one(llama_token *tokens, int32_t count);
int32_t llama_decode(llama_context *context, llama_batch batch);

llama_sampler_chain_params llama_sampler_chain_default_params(void);
llama_sampler *llama_sampler_chain_init(llama_sampler_chain_params params);
void llama_sampler_chain_add(llama_sampler *chain, llama_sampler *sampler);
llama_sampler *llama_sampler_init(const struct llama_sampler_i *iface, void *ctx);
llama_sampler *llama_sampler_init_temp(float temperature);
llama_sampler *llama_sampler_init_dist(uint32_t seed);
llama_token llama_sampler_sample(llama_sampler *sampler, llama_context *context, int32_t index);
void llama_sampler_free(llama_sampler *sampler);
llama_sampler *llama_sampler_clone(const llama_sampler *sampler);
void llama_sampler_reset(llama_sampler *sampler);

#endif
