/*
 * The interface of llguidance on the engine of maskwright, for programs that were written for it. Compile them with this header in place of theirs,
 * and link with libmaskwright.
 *
 * Names, arguments and structs are those of llguidance 1.9, so what was compiled with its header can be linked as well, if it calls nothing
 * that is missing here: stop controllers, masks in parallel (llg_par_compute_mask), cancellation handles.
 *
 * What differs
 *
 *   Languages    JSON Schema, regular expressions and Lark as maskwright reads them: what cannot be enforced exactly is refused with a sentence that
 *                says so. A list of grammars in JSON may have one grammar.
 *   Limits       LlgParserLimits are limits of another engine, and not looked at. Compiling has a limit of ten seconds and 256 MiB.
 *   Logs         Nothing is logged; log levels are not looked at.
 *   Tokenizers   A tokenize function need not work on bytes that are not UTF-8, and what it returns counts only if it spells the text. Forced tokens are those
 *                that the tokenizer has for every continuation. slices are not needed, and not looked at.
 *   Errors       A null handle is an error, not a crash.
 *
 * Threads: a tokenizer may be used by any number of threads at once. A matcher or constraint may be used by any thread, but by one at a time, and so may a function
 * that takes it as const. maskwright.h is the whole interface.
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
#define LLG_DECODE_INCLUDE_SPECIAL 1 /* Special tokens by their names. */
#define LLG_DECODE_VALID_UTF8 2      /* U+FFFD in place of what is not UTF-8. */

typedef struct LlgConstraint LlgConstraint;
typedef struct LlgMatcher LlgMatcher;
typedef struct LlgTokenizer LlgTokenizer;

typedef uint32_t LlgToken;

/* Not looked at. */
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

/* What a matcher or constraint is made with; llg_constraint_init_set_defaults fills it in. */
typedef struct LlgConstraintInit {
    const struct LlgTokenizer *tokenizer;
    uint32_t log_buffer_level; /* Not looked at. */
    uint32_t log_stderr_level; /* Not looked at. */
    bool ff_tokens_ok;         /* Whether llg_commit_token may give more than one token. */
    bool backtrack_ok;         /* Not looked at: nothing is ever taken back. */
    struct LlgParserLimits limits;
} LlgConstraintInit;

/* Writes at most output_tokens_len tokens, and returns how many there are. Any thread may call it at any time. */
typedef size_t (*LlgTokenizeFn)(const void *user_data, const uint8_t *bytes, size_t bytes_len, uint32_t *output_tokens,
                                size_t output_tokens_len);

/* What a tokenizer is made with. Set the rest to zero. */
typedef struct LlgTokenizerInit {
    uint32_t vocab_size;
    LlgToken tok_eos; /* UINT32_MAX if there is none. */
    /* The bytes of all tokens, one behind the other. A special token is a byte FF and its name; a token without bytes does not exist. */
    const uint32_t *token_lens;
    const uint8_t *token_bytes;
    const char *tokenizer_json; /* In their place: the content of a tokenizer.json. */
    bool tokenize_assumes_string; /* Not looked at: only UTF-8 is handed to tokenize_fn. */
    LlgTokenizeFn tokenize_fn;
    bool use_approximate_greedy_tokenize_fn; /* Then tokenize_fn is not called, and no ordinary token is ever forced. */
    const void *tokenize_user_data;
    const char *const *slices; /* Not looked at. */
} LlgTokenizerInit;

/* The same with more tokens that end a text. */
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

/* The tokens of a text, as many as there is room for; returns how many there are. Where the tokenizer cannot say, the longest tokens that fit. */
size_t llg_tokenize_bytes(const struct LlgTokenizer *tok, const uint8_t *bytes, size_t bytes_len, uint32_t *output_tokens,
                          size_t output_tokens_len);
/* The same; a byte FF is followed by the name of a special token, <...>, or by a number, [123]. */
size_t llg_tokenize_bytes_marker(const struct LlgTokenizer *tok, const uint8_t *bytes, size_t bytes_len, uint32_t *output_tokens,
                                 size_t output_tokens_len);
/* Tokens as text for people, or as the text that they are, with a zero at the end; returns how long it is with the zero. */
size_t llg_stringify_tokens(const struct LlgTokenizer *tok, const uint32_t *tokens, size_t n_tokens, char *output, size_t output_len);
size_t llg_decode_tokens(const struct LlgTokenizer *tok, const uint32_t *tokens, size_t n_tokens, char *output, size_t output_len,
                         uint32_t flags);

void llg_constraint_init_set_defaults(struct LlgConstraintInit *init, const struct LlgTokenizer *tokenizer);

/* 0 if a grammar can be compiled, otherwise -1 and a message. */
int32_t llg_validate_grammar(const struct LlgConstraintInit *init, const char *constraint_type, const char *data, char *message,
                             size_t message_len);

/* Matchers. The types of constraints are "regex", "json" or "json_schema", "json_object", "lark", and "llguidance" or "guidance": Lark, or a list of
   grammars in JSON. There always is a matcher; ask it for an error. What returns int32_t returns -1 after an error, and errors stay. */
struct LlgMatcher *llg_new_matcher(const struct LlgConstraintInit *init, const char *constraint_type, const char *data);
struct LlgMatcher *llg_clone_matcher(const struct LlgMatcher *matcher);
void llg_free_matcher(struct LlgMatcher *matcher);
/* The error, or NULL; valid until the matcher is freed. */
const char *llg_matcher_get_error(struct LlgMatcher *matcher);
bool llg_matcher_is_error(const struct LlgMatcher *matcher);
/* The mask: token t is bit t % 32 of word t / 32. Where the text is over, what ends it is allowed. */
int32_t llg_matcher_compute_mask_into(struct LlgMatcher *matcher, uint32_t *mask_dest, size_t mask_byte_len);
int32_t llg_matcher_compute_mask(struct LlgMatcher *matcher);
/* What was worked out for this place, or NULL; valid until the next call with this matcher. */
const uint32_t *llg_matcher_get_mask(struct LlgMatcher *matcher);
size_t llg_matcher_get_mask_byte_size(const struct LlgMatcher *matcher);
int32_t llg_matcher_consume_token(struct LlgMatcher *matcher, uint32_t token);
int32_t llg_matcher_consume_tokens(struct LlgMatcher *matcher, const uint32_t *tokens, size_t n_tokens);
int32_t llg_matcher_rollback(struct LlgMatcher *matcher, size_t num_tokens);
int32_t llg_matcher_reset(struct LlgMatcher *matcher);
/* Whether the text is complete. */
bool llg_matcher_is_accepting(struct LlgMatcher *matcher);
/* Whether nothing but the end can follow, or there is an error. */
bool llg_matcher_is_stopped(const struct LlgMatcher *matcher);
/* How many of some tokens could be taken. */
int32_t llg_matcher_validate_tokens(struct LlgMatcher *matcher, const uint32_t *tokens, size_t n_tokens);
/* The tokens that must come next, as many as there is room for; returns how many were written. */
int32_t llg_matcher_compute_ff_tokens(struct LlgMatcher *matcher, uint32_t *output, size_t output_len);

/* Constraints: the older form, in which masks and tokens take turns. */
typedef struct LlgMaskResult {
    const uint32_t *sample_mask; /* NULL if the text is over; valid until the next call with this constraint. */
    float temperature;           /* 0 */
    bool is_stop;                /* Whether the text is over. */
} LlgMaskResult;

typedef struct LlgCommitResult {
    const uint32_t *tokens; /* What to append: the token, and those that are forced behind it; valid until the next call. */
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
/* An empty text. */
const char *llg_flush_logs(struct LlgConstraint *cc);

/* The version of maskwright. */
const char *llg_get_version(void);

#ifdef __cplusplus
}
#endif

#endif /* LLGUIDANCE_H */
