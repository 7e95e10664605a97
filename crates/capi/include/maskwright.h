/*
 * maskwright: constrained decoding, so that everything a language model writes is valid.
 *
 *     mw_vocabulary *vocabulary;           the tokens of a model                   one per tokenizer
 *     mw_compiler *compiler;               compiles constraints, and caches them   one per vocabulary
 *     mw_compiled_constraint *constraint;  a regex, grammar, JSON Schema ...       shared by all texts
 *     mw_matcher *matcher;                 the state of one text                   one per text
 *
 *     mw_vocabulary_load("tokenizer.json", NULL, &vocabulary, message, sizeof message);
 *     mw_compiler_new(vocabulary, NULL, &compiler, message, sizeof message);
 *     mw_compile(compiler, MW_REGEX, "yes|no", 6, &constraint, message, sizeof message);
 *     mw_matcher_new(constraint, &matcher, message, sizeof message);
 *     for (;;) {
 *         mw_matcher_fill_mask(matcher, words, mw_vocabulary_mask_words(vocabulary), NULL, 0);
 *         mw_apply_mask(logits, mw_vocabulary_size(vocabulary), words, mw_vocabulary_mask_words(vocabulary), NULL, 0);
 *         token = sample(logits);
 *         mw_matcher_accept(matcher, token, NULL, 0);
 *     }
 *
 * docs/c.md has complete programs.
 *
 * Rules for all functions
 *
 *   Status      A function that can fail returns an mw_status. MW_OK is 0.
 *   Message     If it fails, it writes a sentence into message: at most message_size bytes, with a zero at the end, never
 *               cut inside a UTF-8 character. message may be NULL. If it succeeds, message is not changed.
 *   Handles     A function that creates an object writes a handle through its last pointer before message, or NULL if it
 *               fails. Each handle is freed once, by the function of its name; freeing NULL has no effect. Handles may be
 *               freed in any order: a matcher keeps alive what it needs.
 *   Buffers     Buffers belong to the caller, and their lengths are counted in elements. A function that writes a list also
 *               writes the number of its elements; if the buffer is too short it returns MW_TOO_SHORT and writes none of
 *               them. Buffers must not overlap, and no pointer is kept, unless the function says so.
 *   Texts       Texts are UTF-8. A length is counted in bytes without a zero at the end; a text without a length ends with
 *               a zero.
 *   Structs     A struct begins with struct_size, which is sizeof of the struct. Set all other fields to zero, or use the
 *               _INIT macro, and then set the fields that you need. The size tells a newer or older library which fields
 *               your header has.
 *   Threads     A vocabulary, compiler, constraint or request may be used by any number of threads at once. A matcher may
 *               be used by any thread, but only by one at a time; different matchers are independent. Freeing is a use.
 *   Panics      A bug in the library causes the status MW_INTERNAL and does not end the process. A matcher in which that
 *               happened refuses all further calls, but can be freed.
 *   Output      The library prints nothing but the message of a panic, to the standard error, and reads no environment
 *               variables. Only mw_vocabulary_load reads files. A compiler has its own threads; the threads of
 *               mw_fill_masks are shared by all compilers.
 */
#ifndef MASKWRIGHT_H
#define MASKWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of a call. Numbers never change their meaning. */
typedef int32_t mw_status;
enum {
    MW_OK = 0,
    MW_ARGUMENT = 1,    /* An argument is null, out of range, not UTF-8, or contradicts another. */
    MW_TOO_SHORT = 2,   /* A buffer is too short. */
    MW_FILE = 3,        /* A file cannot be read. */
    MW_VOCABULARY = 4,  /* A tokenizer or a list of tokens does not form a valid vocabulary, or cannot encode a text. */
    MW_CONSTRAINT = 5,  /* The constraint is invalid. */
    MW_TIMEOUT = 6,     /* Compiling took longer than allowed. */
    MW_LIMIT = 7,       /* A limit on size or steps was exceeded. */
    MW_BUSY = 8,        /* Too many constraints wait to be compiled; try again later. */
    MW_NOT_ALLOWED = 9, /* The token may not come next. */
    MW_NO_TOKEN = 10,   /* There is no such token. */
    MW_PENDING = 11,    /* The result is not there yet. */
    MW_INTERNAL = 12,   /* A bug in the library. */
    MW_UNSUPPORTED = 13, /* The constraint may be valid, but cannot be enforced exactly. */
    MW_CANCELLED = 14   /* The compiler was freed, or the work was cancelled. */
};

/* The version of this header. */
#define MW_HEADER_VERSION "0.1.0"

/* The version of the library. */
const char *mw_version(void);

/* The name of a status, such as "MW_OK". */
const char *mw_status_name(mw_status status);


/* Vocabularies ------------------------------------------------------------------------------------------------------------------- */

typedef struct mw_vocabulary mw_vocabulary;

/* Settings that override a tokenizer's file, or supplement a list of tokens. */
typedef struct mw_vocabulary_options {
    size_t struct_size;
    /* The tokens that end a text. If NULL, those that the file names; for a list of tokens, none. A token listed here
       becomes special. */
    const uint32_t *eos;
    size_t eos_count;
    /* The width of a row of the model's logits, if it is larger than the vocabulary; otherwise 0. */
    size_t size;
} mw_vocabulary_options;

#define MW_VOCABULARY_OPTIONS_INIT { sizeof(mw_vocabulary_options), NULL, 0, 0 }

/* Reads a tokenizer.json, a tiktoken file, a SentencePiece model or a GGUF file (with any name), or a folder that
   contains one of them. options may be NULL. */
mw_status mw_vocabulary_load(const char *path, const mw_vocabulary_options *options, mw_vocabulary **vocabulary,
                             char *message, size_t message_size);

/* The kind of a token. */
enum {
    MW_TOKEN_ORDINARY = 0, /* It adds bytes to the text. */
    MW_TOKEN_SPECIAL = 1,  /* It has a name, and no text spells it. */
    MW_TOKEN_UNUSED = 2    /* There is no token with this id. */
};

/* Encodes a text as the tokenizer does in the middle of a text: without a token for the beginning, and with names of
   special tokens as ordinary text. Writes at most capacity tokens and returns how many there are, or SIZE_MAX on
   failure. It must be callable from any thread, at any time until the vocabulary and everything created from it is
   freed, and must not throw. */
typedef size_t (*mw_encode_fn)(const void *data, const char *text, size_t text_length, uint32_t *tokens, size_t capacity);

/* Tokens in memory. Everything is copied. */
typedef struct mw_tokens {
    size_t struct_size;
    size_t count;
    /* The bytes of all tokens, or their names if they are special, one after the other. */
    const uint8_t *bytes;
    /* The length of each token in bytes: count elements. */
    const uint32_t *lengths;
    /* The kind of each token: count elements, MW_TOKEN_...; NULL if all are ordinary. */
    const uint8_t *kinds;
    /* The encoder of text; NULL if there is none. Only mw_vocabulary_encode and functions for forced tokens call it. */
    mw_encode_fn encode;
    /* The first argument of encode. It is stored, but never dereferenced. */
    const void *encode_data;
} mw_tokens;

#define MW_TOKENS_INIT { sizeof(mw_tokens), 0, NULL, NULL, NULL, NULL, NULL }

/* Creates a vocabulary from tokens in memory. options may be NULL. */
mw_status mw_vocabulary_new(const mw_tokens *tokens, const mw_vocabulary_options *options, mw_vocabulary **vocabulary,
                            char *message, size_t message_size);

void mw_vocabulary_free(mw_vocabulary *vocabulary);

/* The number of ids, including those without a token: the width of a row of logits. 0 for NULL. */
size_t mw_vocabulary_size(const mw_vocabulary *vocabulary);

/* The number of 32-bit words of a mask. 0 for NULL. */
size_t mw_vocabulary_mask_words(const mw_vocabulary *vocabulary);

/* The tokens that end a text, ascending. */
mw_status mw_vocabulary_eos(const mw_vocabulary *vocabulary, uint32_t *tokens, size_t capacity, size_t *count,
                            char *message, size_t message_size);

/* The kind of a token, and its bytes, or its name if it is special. */
mw_status mw_vocabulary_token(const mw_vocabulary *vocabulary, uint32_t token, uint32_t *kind,
                              uint8_t *bytes, size_t capacity, size_t *length, char *message, size_t message_size);

/* Encodes a text that is a continuation: without a token for the beginning, and with names of special tokens as
   ordinary text. The bytes of the tokens are exactly the text; if the tokenizer cannot do that, the call fails. */
mw_status mw_vocabulary_encode(const mw_vocabulary *vocabulary, const char *text, size_t text_length,
                               uint32_t *tokens, size_t capacity, size_t *count, char *message, size_t message_size);

/* The bytes that tokens add to a text. Special tokens add none. */
mw_status mw_vocabulary_decode(const mw_vocabulary *vocabulary, const uint32_t *tokens, size_t token_count,
                               uint8_t *bytes, size_t capacity, size_t *length, char *message, size_t message_size);


/* Compilers and constraints ------------------------------------------------------------------------------------------------------ */

typedef struct mw_compiler mw_compiler;
typedef struct mw_compiled_constraint mw_compiled_constraint;
typedef struct mw_request mw_request;

/* The settings of a compiler. 0 means the default. */
typedef struct mw_compiler_options {
    size_t struct_size;
    size_t workers;       /* Threads that compile; 2 by default. */
    size_t cache_bytes;   /* Bytes that are kept between requests; 512 MiB by default. */
    size_t compile_bytes; /* Bytes that one compilation may use, and its result may hold; 256 MiB by default. */
    size_t queue;         /* Constraints that may wait for a worker; 10,000 by default. */
    size_t timeout_ms;    /* Time limit of one compilation; 10,000 by default. */
    size_t failures_ms;   /* How long a failure is remembered; 10,000 by default. */
    /* Options of the languages, as JSON, such as {"json_schema": {"whitespace": "compact"}}; NULL by default. Unknown
       options are an error. */
    const char *languages;
    /* The maximum number of steps for one mask or one token, at some nanoseconds each; 20,000,000 by default. If it is
       exceeded, a call fails with MW_LIMIT, and the matcher does not change. */
    size_t mask_steps;
} mw_compiler_options;

#define MW_COMPILER_OPTIONS_INIT { sizeof(mw_compiler_options), 0, 0, 0, 0, 0, 0, NULL, 0 }

/* Creates a compiler for a vocabulary. options may be NULL. */
mw_status mw_compiler_new(const mw_vocabulary *vocabulary, const mw_compiler_options *options, mw_compiler **compiler,
                          char *message, size_t message_size);

/* Ends the threads of a compiler, and waits for them. Pending requests fail; constraints and matchers can still be
   used. */
void mw_compiler_free(mw_compiler *compiler);

/* The language of a constraint. */
enum {
    MW_REGEX = 1,          /* The whole text matches a regular expression. */
    MW_CHOICE = 2,         /* The text is one of a list, given as a JSON array of strings. See also mw_compile_choice. */
    MW_EBNF = 3,           /* A grammar: root ::= ... */
    MW_GBNF = 4,           /* A grammar in the notation of llama.cpp. */
    MW_LARK = 5,           /* A Lark grammar: start: ... */
    MW_JSON_SCHEMA = 6,    /* The text is JSON that satisfies a schema. */
    MW_STRUCTURAL_TAG = 7, /* Free text with constrained parts, as JSON. */
    MW_PCFG = 8            /* A grammar with probabilities: S -> a [0.25] | b [0.75]. Masks allow all its texts, regardless of probability. */
};

/* Compiles a constraint, or finds it in the cache, and waits for it. */
mw_status mw_compile(const mw_compiler *compiler, uint32_t kind, const char *text, size_t text_length,
                     mw_compiled_constraint **constraint, char *message, size_t message_size);

/* Does the same for a list of choices, each of which ends with a zero. */
mw_status mw_compile_choice(const mw_compiler *compiler, const char *const *choices, size_t choice_count,
                            mw_compiled_constraint **constraint, char *message, size_t message_size);

/* Requests a constraint without waiting for it. */
mw_status mw_request_new(const mw_compiler *compiler, uint32_t kind, const char *text, size_t text_length,
                         mw_request **request, char *message, size_t message_size);

/* Waits for a constraint for at most this time: MW_PENDING if it is not there by then. May be called again, also after
   a success. */
mw_status mw_request_wait(const mw_request *request, uint64_t milliseconds, mw_compiled_constraint **constraint,
                          char *message, size_t message_size);

/* Cancels a request that is not done, and frees it. If no other request waits for the constraint, compiling stops. */
void mw_request_free(mw_request *request);

/* The remarks about a constraint, as JSON with a zero at the end that length does not count. "report" says how each
   keyword of a schema is treated ({"pointer": "/type", "coverage": "enforced"}). "warnings" lists possible mistakes:
   for a grammar {"message", "help", "start", "end"}, the last two in bytes of its text, and for a schema {"message",
   "pointer"}. */
mw_status mw_compiled_constraint_remarks(const mw_compiled_constraint *constraint, char *text, size_t capacity, size_t *length,
                                char *message, size_t message_size);

void mw_compiled_constraint_free(mw_compiled_constraint *constraint);

/* The statistics of a compiler. Matchers report from time to time, and when they are freed. */
typedef struct mw_statistics {
    size_t struct_size;
    uint64_t requests_hit;           /* The constraint was in the cache. */
    uint64_t requests_joined;        /* Another request was already compiling it. */
    uint64_t requests_missed;        /* It had to be compiled. */
    uint64_t requests_known_failure; /* The cache knew that it cannot be compiled. */
    uint64_t compiled;
    uint64_t refused;
    uint64_t too_long;
    uint64_t too_large;
    uint64_t panicked;
    uint64_t cancelled;
    uint64_t cache_entries;
    uint64_t cache_bytes;
    uint64_t shared_bytes; /* Size of the data that constraints share. */
    uint64_t evictions;
    uint64_t queued;
    uint64_t running;
    uint64_t matchers;
    uint64_t masks;
    uint64_t tokens;
    uint64_t mask_p50_ns; /* Half of the timed masks took at most this long; 0 if none was timed, UINT64_MAX if it is above all bounds. */
    uint64_t mask_p99_ns;
} mw_statistics;

#define MW_STATISTICS_INIT { sizeof(mw_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

mw_status mw_compiler_statistics(const mw_compiler *compiler, mw_statistics *statistics, char *message, size_t message_size);

/* Returns the same and more as text in the format of Prometheus, with a zero at the end that length does not count. The
   text can grow while the compiler works: leave some room beyond the length that an earlier call returned. */
mw_status mw_compiler_prometheus(const mw_compiler *compiler, char *text, size_t capacity, size_t *length,
                                 char *message, size_t message_size);

/* Saves what a compiler has learnt and its compiled constraints, for another process with the same vocabulary. The data
   can grow while the compiler works: leave some room beyond the length that an earlier call returned. */
mw_status mw_compiler_save(const mw_compiler *compiler, uint8_t *bytes, size_t capacity, size_t *length, char *message, size_t message_size);

/* Loads what was saved, and waits until its constraints are compiled; ready is their number. MW_FILE if the data is
   damaged, or belongs to another version or another vocabulary: then nothing changes. Undamaged data is trusted: load
   only your own. */
mw_status mw_compiler_load(const mw_compiler *compiler, const uint8_t *bytes, size_t length, size_t *ready, char *message, size_t message_size);


/* Matchers ----------------------------------------------------------------------------------------------------------------------- */

typedef struct mw_matcher mw_matcher;

/* Creates a matcher at the beginning of a text. */
mw_status mw_matcher_new(const mw_compiled_constraint *constraint, mw_matcher **matcher, char *message, size_t message_size);

/* Creates an independent matcher in the same state, with the same history. It reads matcher, so no other thread may use
   that meanwhile. */
mw_status mw_matcher_fork(const mw_matcher *matcher, mw_matcher **copy, char *message, size_t message_size);

void mw_matcher_free(mw_matcher *matcher);

/* Writes the mask: bit t % 32 of word t / 32 is 1 if token t may come next. Tokens that end the text are allowed if it
   is complete. After the end no token is allowed. Words beyond mw_vocabulary_mask_words are cleared. */
mw_status mw_matcher_fill_mask(mw_matcher *matcher, uint32_t *words, size_t word_count, char *message, size_t message_size);

/* Does the same for many matchers, in parallel: matcher i fills stride words, starting at words + i * stride. At most
   threads threads work at the same time, the calling one included; 0 means one for each processor. No matcher may occur
   twice. An error affects one matcher only: its row is cleared if it is long enough, its status is statuses[i], and the
   first such status is returned with its message. statuses may be NULL. */
mw_status mw_fill_masks(mw_matcher *const *matchers, size_t matcher_count, uint32_t *words, size_t stride, size_t threads,
                        mw_status *statuses, char *message, size_t message_size);

/* In place of a token: there is no token to accept. */
#define MW_SKIP UINT32_MAX

/* Runs one step of a batch: matcher i accepts tokens[i], unless that is MW_SKIP, and then fills its row, in parallel,
   as mw_fill_masks does. If it refuses the token, its state and its mask do not change, and its status says so.
   changed[i] tells whether its mask may have changed; changed may be NULL. With keep_rows, a row whose mask has not
   changed is not written: it must still hold what the last step of its matcher wrote. */
mw_status mw_step_batch(mw_matcher *const *matchers, size_t matcher_count, const uint32_t *tokens, uint32_t *words, size_t stride,
                        int32_t keep_rows, size_t threads, uint8_t *changed, mw_status *statuses, char *message, size_t message_size);

/* Accepts a token. If it is refused, nothing changes. */
mw_status mw_matcher_accept(mw_matcher *matcher, uint32_t token, char *message, size_t message_size);

/* Accepts some tokens: all of them, or none. */
mw_status mw_matcher_accept_tokens(mw_matcher *matcher, const uint32_t *tokens, size_t token_count,
                                   char *message, size_t message_size);

/* Accepts some bytes of text, as one step. If they are refused, nothing changes. */
mw_status mw_matcher_accept_bytes(mw_matcher *matcher, const uint8_t *bytes, size_t byte_count,
                                  char *message, size_t message_size);

/* Counts how many of these tokens could be accepted, one after the other. The matcher does not change. This is less
   work than a mask. */
mw_status mw_matcher_validate(mw_matcher *matcher, const uint32_t *tokens, size_t token_count, size_t *accepted,
                                char *message, size_t message_size);

/* Writes the masks after guessed tokens, for an engine that verifies several tokens in one step. Row 0, at words, is
   the current mask, and row i + 1, at words + (i + 1) * stride, is the mask after tokens[i], which follows tokens[i -
   1]. allowed[i] tells whether tokens[i] may come there; the rows after a token that may not are cleared. allowed may
   be NULL. There must be room for token_count + 1 rows. The matcher does not change. */
mw_status mw_matcher_fill_draft_chain(mw_matcher *matcher, const uint32_t *tokens, size_t token_count, uint32_t *words, size_t stride,
                                      uint8_t *allowed, char *message, size_t message_size);

/* In place of a parent: the token follows the text so far. */
#define MW_ROOT UINT32_MAX

/* Does the same for a tree: tokens[i] follows tokens[parents[i]], which precedes it in the list, or the text so far, if
   parents[i] is MW_ROOT. */
mw_status mw_matcher_fill_draft_tree(mw_matcher *matcher, const uint32_t *tokens, const uint32_t *parents, size_t token_count, uint32_t *words,
                                     size_t stride, uint8_t *allowed, char *message, size_t message_size);

/* Undoes the last steps: tokens, including the end, and calls of mw_matcher_accept_bytes. */
mw_status mw_matcher_rollback(mw_matcher *matcher, size_t steps, char *message, size_t message_size);

/* Returns to the beginning of the text, and removes a budget. */
mw_status mw_matcher_reset(mw_matcher *matcher, char *message, size_t message_size);

/* The state of a text. It is complete from MW_ACCEPTING on. */
enum {
    MW_OPEN = 0,      /* The text is not complete. */
    MW_ACCEPTING = 1, /* The text is complete, and may continue. */
    MW_STOPPED = 2,   /* The text is complete, and only the end can follow. */
    MW_TERMINATED = 3 /* The end was accepted. */
};

mw_status mw_matcher_state(mw_matcher *matcher, uint32_t *state, char *message, size_t message_size);

/* Allows from now on only what can be completed within this many tokens, including the one that ends the text, so that
   no answer is cut off. MW_NO_BUDGET removes the limit. MW_LIMIT if the text cannot be completed within it, or if that
   is unknown; then nothing changes. */
mw_status mw_matcher_set_budget(mw_matcher *matcher, uint32_t tokens, char *message, size_t message_size);

#define MW_NO_BUDGET UINT32_MAX

/* The bytes that must come next in every complete text, as many as fit and at most 1,024. The matcher does not change.
   */
mw_status mw_matcher_forced_bytes(mw_matcher *matcher, uint8_t *bytes, size_t capacity, size_t *length,
                                  char *message, size_t message_size);

/* The tokens that the tokenizer itself has next in every complete text, as many as fit. before are the last tokens of
   the text so far, including those of the prompt; about thirty are enough. The matcher does not change. Without a
   tokenizer (see mw_tokens) no ordinary token is certain. */
mw_status mw_matcher_forced_tokens(mw_matcher *matcher, const uint32_t *before, size_t before_count,
                                   uint32_t *tokens, size_t capacity, size_t *count, char *message, size_t message_size);

/* Everything that must come next, as an object in JSON: completes (a list of bytes that complete a character that the
   text so far has begun), text (what must come after them, in whole characters), and tokens (as in
   mw_matcher_forced_tokens). The matcher does not change. */
mw_status mw_matcher_forced(mw_matcher *matcher, const uint32_t *before, size_t before_count, char *forced, size_t capacity, size_t *length,
                            char *message, size_t message_size);

/* The minimum number of tokens that complete the text, including the one that ends it; MW_NO_BUDGET if no way is known.
   The matcher does not change. */
mw_status mw_matcher_shortest_completion(mw_matcher *matcher, uint32_t *tokens, char *message, size_t message_size);

/* Explains why a token may come next or not, as an object in JSON: allowed, fitting (how many of its bytes are
   accepted), reason (a sentence), and then (what may follow the accepted bytes). The matcher does not change. */
mw_status mw_matcher_explain(mw_matcher *matcher, uint32_t token, char *explanation, size_t capacity, size_t *length,
                             char *message, size_t message_size);

/* Locates the end of a text in the grammar of a constraint, as an object in JSON: path (the JSON pointer of the value
   that is being written, or null), readings (the open rules, each with the byte at which it began, and the terminal,
   with how much of it is matched), next (the terminals that may begin), complete, bytes and more (not all are listed).
   kind and text are those of mw_compile. The text is parsed again from its beginning: this is for people and logs, not
   for every token. MW_NOT_ALLOWED if the constraint does not allow the tokens. */
mw_status mw_locate(const mw_compiler *compiler, uint32_t kind, const char *text, size_t text_length, const uint32_t *tokens,
                    size_t token_count, char *location, size_t capacity, size_t *length, char *message, size_t message_size);

/* Converts a schema to one regular expression of at most max_length bytes (0: the default) that matches exactly the
   documents of the schema. languages is as in mw_compiler_options, and may be NULL. MW_CONSTRAINT if the schema is
   invalid, is not regular, or needs a longer expression. */
mw_status mw_schema_to_regex(const char *schema, size_t schema_length, const char *languages, size_t max_length,
                             char *regex, size_t capacity, size_t *length, char *message, size_t message_size);


/* Grammars with probabilities ---------------------------------------------------------------------------------------------------- */

/* Computes how likely tokens are under a constraint of kind MW_PCFG. It follows one text, in parallel with its matcher.
   Only one thread at a time may use it. */
typedef struct mw_scorer mw_scorer;

/* Creates a scorer at the beginning of a text. MW_ARGUMENT if the constraint has no probabilities. */
mw_status mw_scorer_new(const mw_compiled_constraint *constraint, mw_scorer **scorer, char *message, size_t message_size);

/* Creates an independent scorer in the same state. */
mw_status mw_scorer_fork(mw_scorer *scorer, mw_scorer **copy, char *message, size_t message_size);

/* Sets scores[i] to log P(tokens[i] | text so far); minus infinity for a token that is not allowed. */
mw_status mw_scorer_scores(mw_scorer *scorer, const uint32_t *tokens, size_t token_count, double *scores,
                           char *message, size_t message_size);

/* Accepts a token. If it is refused, nothing changes. */
mw_status mw_scorer_accept(mw_scorer *scorer, uint32_t token, char *message, size_t message_size);

/* Undoes the last tokens. */
mw_status mw_scorer_rollback(mw_scorer *scorer, size_t steps, char *message, size_t message_size);

/* The logarithm of the probability of all texts with this prefix, and of this text itself; minus infinity if it is not
   complete. */
mw_status mw_scorer_logprob(mw_scorer *scorer, double *prefix, double *text, char *message, size_t message_size);

void mw_scorer_free(mw_scorer *scorer);


/* Tool calls --------------------------------------------------------------------------------------------------------------------- */

/* Returns the structural tag of what a model may write, for compiling as MW_STRUCTURAL_TAG and for mw_reader_new.
   format is the name of a format of models, or the description of one in JSON. request is an object in JSON: tools
   (each with a name and parameters, regex, lark, ebnf or text), choice ("auto", "none", "required", {"name": ...} or
   {"allowed": [...], "required": ...}), one_call, thinking ("optional", "off", "required" or "begun"), answer and
   any_order. */
mw_status mw_tool_format_tag(const char *format, const char *request, char *tag, size_t capacity, size_t *length,
                             char *message, size_t message_size);

/* Parses what was written under a structural tag: text, reasoning and calls. Only one thread at a time may use it. */
typedef struct mw_reader mw_reader;

/* vocabulary may be NULL; then the reader accepts only bytes. */
mw_status mw_reader_new(const char *tag, const mw_vocabulary *vocabulary, mw_reader **reader, char *message, size_t message_size);

/* Reads some bytes, which may end inside a character. */
mw_status mw_reader_feed(mw_reader *reader, const uint8_t *bytes, size_t byte_count, char *message, size_t message_size);

/* Reads some tokens: all of them, or none. */
mw_status mw_reader_feed_tokens(mw_reader *reader, const uint32_t *tokens, size_t token_count, char *message, size_t message_size);

/* Ends the text. finish is 0 if the text is complete, 1 if it ended too early, 2 if a part of it did not fit the tag.
   */
mw_status mw_reader_finish(mw_reader *reader, int32_t *finish, char *message, size_t message_size);

/* Returns the events since the last successful call, as a list of objects in JSON, each with kind, text, and possibly
   index and name. The kinds are text, reasoning, call, call_id, arguments, call_done, call_failed, tag, tag_text,
   tag_done and tag_failed. If they do not fit, nothing is lost: call again with more room. */
mw_status mw_reader_events(mw_reader *reader, char *events, size_t capacity, size_t *length, char *message, size_t message_size);

void mw_reader_free(mw_reader *reader);


/* Logits ------------------------------------------------------------------------------------------------------------------------- */

/* Writes minus infinity into the logits of the tokens whose bit is 0. There must be a bit for each logit. Any number of
   threads may call it with different logits. */
mw_status mw_apply_mask(float *logits, size_t logit_count, const uint32_t *words, size_t word_count,
                        char *message, size_t message_size);

#ifdef __cplusplus
}
#endif

#endif /* MASKWRIGHT_H */
