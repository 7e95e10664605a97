/*
 * The interface of llguidance on the engine of maskwright, for programs that were written for llguidance. Compile them
 * with this header instead of the original one, and link with libmaskwright.
 *
 * Names, arguments and structs are those of llguidance 1.9, so a program that was compiled with the original header can be
 * linked as well, if it uses nothing that is missing here: stop controllers, masks in parallel (llg_par_compute_mask),
 * cancellation handles.
 *
 * Differences
 *
 *   Languages    JSON Schema, regular expressions and Lark as maskwright reads them: what cannot be enforced exactly is
 *                refused with a message. A list of grammars in JSON may have one grammar.
 *   Limits       LlgParserLimits are limits of llguidance's parser and are ignored. Compiling is limited to ten seconds and
 *                256 MiB.
 *   Logs         Nothing is logged; log levels are ignored.
 *   Tokenizers   A tokenize function need not support bytes that are not UTF-8, and its result is only used if it spells the
 *                text. Forced tokens are those that the tokenizer has for every continuation. slices are not needed and
 *                are ignored.
 *   Errors       A null handle is an error, not a crash.
 *
 * Threads: a tokenizer may be used by any number of threads at once. A matcher or constraint may be used by any thread, but
 * only by one at a time; this also holds for functions that take it as const. maskwright.h is the complete interface.
 */
#ifndef LLGUIDANCE_H
#define LLGUIDANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* Programs rely on these. */
#include <stdarg.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of llg_decode_tokens. */
#define LLG_DECODE_NONE 0
#define LLG_DECODE_INCLUDE_SPECIAL 1 /* Special tokens by name. */
#define LLG_DECODE_VALID_UTF8 2      /* U+FFFD in place of bytes that are not UTF-8. */

typedef struct LlgConstraint LlgConstraint;
typedef struct LlgMatcher LlgMatcher;
typedef struct LlgTokenizer LlgTokenizer;

typedef uint32_t LlgToken;

/* Ignored. */
typedef struct LlgParserLimits {
    size_t max_items_in_row;
    uint64_t initial_lexer_fuel;
    uint64_t step_lexer_fuel;
    size_t step_max_items;
    size_t max_lexer_states;
    size_t max_grammar_size;
    bool precompute_large_lexemes;
    bool verbose_errors;
} LlgParserLimits;

/* The arguments for a matcher or constraint; llg_constraint_init_set_defaults sets them. */
typedef struct LlgConstraintInit {
    const struct LlgTokenizer *tokenizer;
    uint32_t log_buffer_level; /* Ignored. */
    uint32_t log_stderr_level; /* Ignored. */
    bool ff_tokens_ok;         /* Whether llg_commit_token may return more than one token. */
    bool backtrack_ok;         /* Ignored: tokens are never removed. */
    struct LlgParserLimits limits;
} LlgConstraintInit;

/* Writes at most output_tokens_len tokens, and returns how many there are. It may be called from any thread at any
   time. */
typedef size_t (*LlgTokenizeFn)(const void *user_data, const uint8_t *bytes, size_t bytes_len, uint32_t *output_tokens,
                                size_t output_tokens_len);

/* The arguments for a tokenizer. Set all other fields to zero. */
typedef struct LlgTokenizerInit {
    uint32_t vocab_size;
    LlgToken tok_eos; /* UINT32_MAX if there is none. */
    /* The bytes of all tokens, one after the other. A special token is a byte FF and its name; a token without bytes
       does not exist. */
    const uint32_t *token_lens;
    const uint8_t *token_bytes;
    const char *tokenizer_json; /* Instead of both: the content of a tokenizer.json. */
    bool tokenize_assumes_string; /* Ignored: tokenize_fn only gets UTF-8. */
    LlgTokenizeFn tokenize_fn;
    bool use_approximate_greedy_tokenize_fn; /* If true, tokenize_fn is not called, and no ordinary token is ever forced. */
    const void *tokenize_user_data;
    const char *const *slices; /* Ignored. */
} LlgTokenizerInit;

/* The same, with several tokens that end a text. */
typedef struct LlgTokenizerInitV2 {
    size_t struct_size; /* sizeof(LlgTokenizerInitV2) */
    uint32_t vocab_size;
    LlgToken tok_eos;
    const uint32_t *token_lens;
    const uint8_t *token_bytes;
    const char *tokenizer_json;
    bool tokenize_assumes_string;
    LlgTokenizeFn tokenize_fn;
    bool use_approximate_greedy_tokenize_fn;
    const void *tokenize_user_data;
    const char *const *slices;
    const LlgToken *tok_eos_extra;
    uint32_t tok_eos_extra_count;
} LlgTokenizerInitV2;

/* Tokenizers. Errors are written into error_string, which may be NULL; then the handle is NULL. */
struct LlgTokenizer *llg_new_tokenizer(const struct LlgTokenizerInit *tok_init, char *error_string, size_t error_string_len);
struct LlgTokenizer *llg_new_tokenizer_v2(const struct LlgTokenizerInitV2 *tok_init, char *error_string, size_t error_string_len);
struct LlgTokenizer *llg_clone_tokenizer(const struct LlgTokenizer *tok);
void llg_free_tokenizer(struct LlgTokenizer *tok);

/* Encodes a text, as far as there is room; returns the number of tokens. If the tokenizer cannot encode it, the longest
   tokens that fit are used. */
size_t llg_tokenize_bytes(const struct LlgTokenizer *tok, const uint8_t *bytes, size_t bytes_len, uint32_t *output_tokens,
                          size_t output_tokens_len);
/* Does the same; a byte FF is followed by the name of a special token, <...>, or by an id, [123]. */
size_t llg_tokenize_bytes_marker(const struct LlgTokenizer *tok, const uint8_t *bytes, size_t bytes_len, uint32_t *output_tokens,
                                 size_t output_tokens_len);
/* Formats tokens for people, or decodes them, with a zero at the end; returns the length including the zero. */
size_t llg_stringify_tokens(const struct LlgTokenizer *tok, const uint32_t *tokens, size_t n_tokens, char *output, size_t output_len);
size_t llg_decode_tokens(const struct LlgTokenizer *tok, const uint32_t *tokens, size_t n_tokens, char *output, size_t output_len,
                         uint32_t flags);

void llg_constraint_init_set_defaults(struct LlgConstraintInit *init, const struct LlgTokenizer *tokenizer);

/* Returns 0 if a grammar can be compiled, otherwise -1 and a message. */
int32_t llg_validate_grammar(const struct LlgConstraintInit *init, const char *constraint_type, const char *data, char *message,
                             size_t message_len);

/* Matchers. The types of constraints are "regex", "json" or "json_schema", "json_object", "lark", and "llguidance" or
   "guidance": Lark, or a list of grammars in JSON. llg_new_matcher always returns a matcher; check it for an error.
   Functions that return int32_t return -1 after an error, and errors persist. */
struct LlgMatcher *llg_new_matcher(const struct LlgConstraintInit *init, const char *constraint_type, const char *data);
struct LlgMatcher *llg_clone_matcher(const struct LlgMatcher *matcher);
void llg_free_matcher(struct LlgMatcher *matcher);
/* The error, or NULL; valid until the matcher is freed. */
const char *llg_matcher_get_error(struct LlgMatcher *matcher);
bool llg_matcher_is_error(const struct LlgMatcher *matcher);
/* Computes the mask: token t is bit t % 32 of word t / 32. At the end of the text it allows the tokens that end it. */
int32_t llg_matcher_compute_mask_into(struct LlgMatcher *matcher, uint32_t *mask_dest, size_t mask_byte_len);
int32_t llg_matcher_compute_mask(struct LlgMatcher *matcher);
/* Returns the mask computed for the current state, or NULL; valid until the next call with this matcher. */
const uint32_t *llg_matcher_get_mask(struct LlgMatcher *matcher);
size_t llg_matcher_get_mask_byte_size(const struct LlgMatcher *matcher);
int32_t llg_matcher_consume_token(struct LlgMatcher *matcher, uint32_t token);
int32_t llg_matcher_consume_tokens(struct LlgMatcher *matcher, const uint32_t *tokens, size_t n_tokens);
int32_t llg_matcher_rollback(struct LlgMatcher *matcher, size_t num_tokens);
int32_t llg_matcher_reset(struct LlgMatcher *matcher);
/* Whether the text is complete. */
bool llg_matcher_is_accepting(struct LlgMatcher *matcher);
/* Whether only the end can follow, or there is an error. */
bool llg_matcher_is_stopped(const struct LlgMatcher *matcher);
/* Returns how many of these tokens could be accepted. */
int32_t llg_matcher_validate_tokens(struct LlgMatcher *matcher, const uint32_t *tokens, size_t n_tokens);
/* Writes the tokens that must come next, as many as fit; returns how many were written. */
int32_t llg_matcher_compute_ff_tokens(struct LlgMatcher *matcher, uint32_t *output, size_t output_len);

/* Constraints: the older interface, in which masks and tokens alternate. */
typedef struct LlgMaskResult {
    const uint32_t *sample_mask; /* NULL at the end of the text; valid until the next call with this constraint. */
    float temperature;           /* 0 */
    bool is_stop;                /* Whether the text has ended. */
} LlgMaskResult;

typedef struct LlgCommitResult {
    const uint32_t *tokens; /* The tokens to append: the token, and those that are forced after it; valid until the next call. */
    uint32_t n_tokens;
    bool is_stop;
} LlgCommitResult;

struct LlgConstraint *llg_new_constraint(const struct LlgConstraintInit *init, const char *llguidance);
struct LlgConstraint *llg_new_constraint_regex(const struct LlgConstraintInit *init, const char *regex);
struct LlgConstraint *llg_new_constraint_json(const struct LlgConstraintInit *init, const char *json_schema);
struct LlgConstraint *llg_new_constraint_lark(const struct LlgConstraintInit *init, const char *lark);
struct LlgConstraint *llg_new_constraint_any(const struct LlgConstraintInit *init, const char *constraint_type, const char *data);
struct LlgConstraint *llg_clone_constraint(const struct LlgConstraint *cc);
void llg_free_constraint(struct LlgConstraint *cc);
const char *llg_get_error(const struct LlgConstraint *cc);
float llg_get_temperature(const struct LlgConstraint *cc);
bool llg_is_stopped(const struct LlgConstraint *cc);
int32_t llg_compute_mask(struct LlgConstraint *cc, struct LlgMaskResult *res_p);
int32_t llg_commit_token(struct LlgConstraint *cc, LlgToken token, struct LlgCommitResult *res_p);
/* Returns an empty text. */
const char *llg_flush_logs(struct LlgConstraint *cc);

/* The version of maskwright. */
const char *llg_get_version(void);

#ifdef __cplusplus
}
#endif

#endif /* LLGUIDANCE_H */
