/*
 * maskwright: which tokens may come next, so that a language model writes valid output by construction.
 *
 *     mw_vocabulary *vocabulary;           what the tokens of a model are          one per tokenizer
 *     mw_compiler *compiler;               compiles constraints, and caches them   one per vocabulary
 *     mw_compiled_constraint *constraint;  a regex, grammar, JSON Schema ...       shared by all texts
 *     mw_matcher *matcher;                 one text being written                  one per text
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
 * docs/c.md has whole programs.
 *
 * Rules that hold for every function
 *
 *   Status      A function that can fail returns an mw_status. MW_OK is 0.
 *   Message     If it fails, it writes a sentence into message: at most message_size bytes, with a zero at the end, cut between characters of
 *               UTF-8. message may be NULL. If it does not fail, message is left alone.
 *   Handles     What a function makes is written through its last pointer before message: a handle, or NULL if it fails. Each handle is freed
 *               once, by the function of its name; freeing NULL does nothing. Handles may be freed in any order: a matcher keeps
 *               alive what it needs.
 *   Buffers     Buffers are the caller's, and their lengths are told in elements. A function that writes a list tells how many
 *               elements there are; if there is too little room it returns MW_TOO_SHORT and writes none of them. Buffers must not overlap, and
 *               no pointer is kept, except where it says so.
 *   Texts       Texts are UTF-8. A length is told in bytes and without a zero at the end; a text without a length ends with a zero.
 *   Structs     A struct begins with struct_size, which is sizeof of the struct. Set all other fields to zero, or use the _INIT macro, and
 *               then those that you want. A library that is newer or older than your header knows by the size which fields there are.
 *   Threads     A vocabulary, compiler, constraint or request may be used by any number of threads at once. A matcher may be used by any thread, but by one
 *               at a time; different matchers are independent. Freeing is a use.
 *   Panics      A bug of the library is the status MW_INTERNAL and not the end of the process. A matcher in which that happened refuses all further calls
 *               and can be freed.
 *   Output      The library prints nothing but the message of a panic, to the standard error, and reads no environment variables. It reads files in mw_vocabulary_load only. A compiler has threads, and
 *               so has mw_fill_masks, which all compilers share.
 */
#ifndef MASKWRIGHT_H
#define MASKWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a call ended. Numbers never change their meaning. */
typedef int32_t mw_status;
enum {
    MW_OK = 0,
    MW_ARGUMENT = 1,    /* An argument is null, out of range, not UTF-8, or contradicts another. */
    MW_TOO_SHORT = 2,   /* A buffer is too short. */
    MW_FILE = 3,        /* A file cannot be read. */
    MW_VOCABULARY = 4,  /* A tokenizer or a list of tokens makes no vocabulary, or cannot cut a text. */
    MW_CONSTRAINT = 5,  /* The constraint is wrong. */
    MW_TIMEOUT = 6,     /* Compiling took longer than it may. */
    MW_LIMIT = 7,       /* Something is larger than it may be, or takes more steps. */
    MW_BUSY = 8,        /* Too many constraints wait to be compiled; try again later. */
    MW_NOT_ALLOWED = 9, /* The token cannot come next. */
    MW_NO_TOKEN = 10,   /* There is no such token. */
    MW_PENDING = 11,    /* Not yet. */
    MW_INTERNAL = 12,   /* A bug of the library. */
    MW_UNSUPPORTED = 13, /* The constraint may be right, but cannot be enforced exactly. */
    MW_CANCELLED = 14   /* The compiler was freed, or the work was told to stop. */
};

/* The version of this header. */
#define MW_HEADER_VERSION "0.1.0"

/* The version of the library. */
const char *mw_version(void);

/* The name of a status, such as "MW_OK". */
const char *mw_status_name(mw_status status);


/* Vocabularies ------------------------------------------------------------------------------------------------------------------- */

typedef struct mw_vocabulary mw_vocabulary;

/* What is to be taken from elsewhere than from a tokenizer's file, or from a list of tokens. */
typedef struct mw_vocabulary_options {
    size_t struct_size;
    /* The tokens that end a text. NULL: those that the file names; in a list of tokens, none. A token named here becomes special. */
    const uint32_t *eos;
    size_t eos_count;
    /* The width of a row of the model's logits, if it is larger than the vocabulary; 0 if it is not. */
    size_t size;
} mw_vocabulary_options;

#define MW_VOCABULARY_OPTIONS_INIT { sizeof(mw_vocabulary_options), NULL, 0, 0 }

/* Reads a tokenizer.json, a tiktoken file, a SentencePiece model or a GGUF file, whatever its name, or a folder that holds one of them.
   options may be NULL. */
mw_status mw_vocabulary_load(const char *path, const mw_vocabulary_options *options, mw_vocabulary **vocabulary,
                             char *message, size_t message_size);

/* What a token is. */
enum {
    MW_TOKEN_ORDINARY = 0, /* It adds bytes to the text. */
    MW_TOKEN_SPECIAL = 1,  /* It has a name, and no text spells it. */
    MW_TOKEN_UNUSED = 2    /* There is no token of that number. */
};

/* Cuts a text into tokens as the tokenizer does in the middle of a text: without a token for the beginning, and with what looks like a special token as ordinary text.
   Writes at most capacity tokens and returns how many there are, or SIZE_MAX if it cannot. Must be callable from any thread, at any time until
   the vocabulary and everything made with it is freed, and must not throw. */
typedef size_t (*mw_encode_fn)(const void *data, const char *text, size_t text_length, uint32_t *tokens, size_t capacity);

/* Tokens in memory. Everything is copied. */
typedef struct mw_tokens {
    size_t struct_size;
    size_t count;
    /* The bytes of all tokens, or their names if they are special, one behind the other. */
    const uint8_t *bytes;
    /* How many bytes each token has: count elements. */
    const uint32_t *lengths;
    /* What each token is: count elements, MW_TOKEN_...; NULL if all are ordinary. */
    const uint8_t *kinds;
    /* How text is cut into tokens; NULL if nobody can say. Only mw_vocabulary_encode and mw_matcher_forced_tokens ask. */
    mw_encode_fn encode;
    /* The first argument of encode; kept, and never looked at. */
    const void *encode_data;
} mw_tokens;

#define MW_TOKENS_INIT { sizeof(mw_tokens), 0, NULL, NULL, NULL, NULL, NULL }

/* Makes a vocabulary of tokens in memory. options may be NULL. */
mw_status mw_vocabulary_new(const mw_tokens *tokens, const mw_vocabulary_options *options, mw_vocabulary **vocabulary,
                            char *message, size_t message_size);

void mw_vocabulary_free(mw_vocabulary *vocabulary);

/* Number of ids, those without a token included: the width of a row of logits. 0 for NULL. */
size_t mw_vocabulary_size(const mw_vocabulary *vocabulary);

/* Number of 32-bit words of a mask. 0 for NULL. */
size_t mw_vocabulary_mask_words(const mw_vocabulary *vocabulary);

/* The tokens that end a text, ascending. */
mw_status mw_vocabulary_eos(const mw_vocabulary *vocabulary, uint32_t *tokens, size_t capacity, size_t *count,
                            char *message, size_t message_size);

/* What a token is, and its bytes, or its name if it is special. */
mw_status mw_vocabulary_token(const mw_vocabulary *vocabulary, uint32_t token, uint32_t *kind,
                              uint8_t *bytes, size_t capacity, size_t *length, char *message, size_t message_size);

/* The tokens for a text that goes on: without a token for the beginning, and with what looks like a special token as ordinary text. Their bytes are
   exactly the text; where the tokenizer cannot do that, the call fails. */
mw_status mw_vocabulary_encode(const mw_vocabulary *vocabulary, const char *text, size_t text_length,
                               uint32_t *tokens, size_t capacity, size_t *count, char *message, size_t message_size);

/* The bytes that tokens add to a text. Special tokens add none. */
mw_status mw_vocabulary_decode(const mw_vocabulary *vocabulary, const uint32_t *tokens, size_t token_count,
                               uint8_t *bytes, size_t capacity, size_t *length, char *message, size_t message_size);


/* Compilers and constraints ------------------------------------------------------------------------------------------------------ */

typedef struct mw_compiler mw_compiler;
typedef struct mw_compiled_constraint mw_compiled_constraint;
typedef struct mw_request mw_request;

/* How a compiler works. What is 0 is as usual. */
typedef struct mw_compiler_options {
    size_t struct_size;
    size_t workers;       /* Threads that compile; usually 2. */
    size_t cache_bytes;   /* Bytes that are kept between requests; usually 512 MiB. */
    size_t compile_bytes; /* Bytes that one compilation may take, and its result hold; usually 256 MiB. */
    size_t queue;         /* How many constraints may wait for a worker; usually 10,000. */
    size_t timeout_ms;    /* How long one compilation may take; usually 10,000. */
    size_t failures_ms;   /* How long a failure is remembered; usually 10,000. */
    /* Options of the languages, as JSON, such as {"json_schema": {"whitespace": "compact"}}; usually NULL. What is not known is refused. */
    const char *languages;
    /* Steps that one mask or one token may take, some nanoseconds each; usually 20,000,000. Beyond them a call ends with MW_LIMIT, and the matcher is as before. */
    size_t mask_steps;
} mw_compiler_options;

#define MW_COMPILER_OPTIONS_INIT { sizeof(mw_compiler_options), 0, 0, 0, 0, 0, 0, NULL, 0 }

/* A compiler for a vocabulary. options may be NULL. */
mw_status mw_compiler_new(const mw_vocabulary *vocabulary, const mw_compiler_options *options, mw_compiler **compiler,
                          char *message, size_t message_size);

/* Ends the threads of a compiler, and waits for them. Requests that wait fail; constraints and matchers go on. */
void mw_compiler_free(mw_compiler *compiler);

/* The language of a constraint. */
enum {
    MW_REGEX = 1,          /* The whole text matches a regular expression. */
    MW_CHOICE = 2,         /* The text is one of some texts, given as a JSON array of strings. See mw_compile_choice as well. */
    MW_EBNF = 3,           /* A grammar: root ::= ... */
    MW_GBNF = 4,           /* A grammar as llama.cpp writes it. */
    MW_LARK = 5,           /* A Lark grammar: start: ... */
    MW_JSON_SCHEMA = 6,    /* The text is JSON that satisfies a schema. */
    MW_STRUCTURAL_TAG = 7, /* Free text with constrained parts, as JSON. */
    MW_PCFG = 8            /* A grammar with probabilities: S -> a [0.25] | b [0.75]. Masks allow its texts, whatever their probabilities. */
};

/* Compiles a constraint, or finds it in the cache, and waits for it. */
mw_status mw_compile(const mw_compiler *compiler, uint32_t kind, const char *text, size_t text_length,
                     mw_compiled_constraint **constraint, char *message, size_t message_size);

/* The same for a list of choices, each of which ends with a zero. */
mw_status mw_compile_choice(const mw_compiler *compiler, const char *const *choices, size_t choice_count,
                            mw_compiled_constraint **constraint, char *message, size_t message_size);

/* Asks for a constraint, and does not wait for it. */
mw_status mw_request_new(const mw_compiler *compiler, uint32_t kind, const char *text, size_t text_length,
                         mw_request **request, char *message, size_t message_size);

/* Waits for a constraint, but not longer than this: MW_PENDING if it is not there by then. May be called again, also after it was there. */
mw_status mw_request_wait(const mw_request *request, uint64_t milliseconds, mw_compiled_constraint **constraint,
                          char *message, size_t message_size);

/* Cancels a request that is not done, and frees it. If nobody else waits for the constraint, compiling it stops. */
void mw_request_free(mw_request *request);

/* What was remarked about the constraint while it was read, as JSON with a zero at the end that length does not count: in "report" what became of each keyword
   of a schema ({"pointer": "/type", "coverage": "enforced"}), in "warnings" what the author may have meant otherwise: of a grammar {"message", "help", "start",
   "end"}, the last two in bytes of its text, and of a schema {"message", "pointer"}. */
mw_status mw_compiled_constraint_remarks(const mw_compiled_constraint *constraint, char *text, size_t capacity, size_t *length,
                                char *message, size_t message_size);

void mw_compiled_constraint_free(mw_compiled_constraint *constraint);

/* What a compiler has done so far. Matchers report now and then, and when they are freed. */
typedef struct mw_statistics {
    size_t struct_size;
    uint64_t requests_hit;           /* The constraint was in the cache. */
    uint64_t requests_joined;        /* It was being compiled for somebody else. */
    uint64_t requests_missed;        /* It had to be compiled. */
    uint64_t requests_known_failure; /* It was known that it cannot be compiled. */
    uint64_t compiled;
    uint64_t refused;
    uint64_t too_long;
    uint64_t too_large;
    uint64_t panicked;
    uint64_t cancelled;
    uint64_t cache_entries;
    uint64_t cache_bytes;
    uint64_t shared_bytes; /* Held by what constraints share. */
    uint64_t evictions;
    uint64_t queued;
    uint64_t running;
    uint64_t matchers;
    uint64_t masks;
    uint64_t tokens;
    uint64_t mask_p50_ns; /* Half of the masks that were timed took no longer; 0 if none was, UINT64_MAX if it is beyond all bounds. */
    uint64_t mask_p99_ns;
} mw_statistics;

#define MW_STATISTICS_INIT { sizeof(mw_statistics), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

mw_status mw_compiler_statistics(const mw_compiler *compiler, mw_statistics *statistics, char *message, size_t message_size);

/* The same, and more, as text in the format of Prometheus, with a zero at the end that length does not count. Numbers grow
   while the compiler works: leave some room beyond the length that an earlier call has told. */
mw_status mw_compiler_prometheus(const mw_compiler *compiler, char *text, size_t capacity, size_t *length,
                                 char *message, size_t message_size);

/* What a compiler has learnt and which constraints are ready, for another process with the same vocabulary. It grows while the compiler works: leave some room beyond the length that an earlier call has told. */
mw_status mw_compiler_save(const mw_compiler *compiler, uint8_t *bytes, size_t capacity, size_t *length, char *message, size_t message_size);

/* Takes over what was saved, and waits until its constraints are ready; ready tells how many are. MW_FILE if it is damaged, of another version, or of another
   vocabulary: then nothing has changed. What is not damaged is believed: load only what is yours. */
mw_status mw_compiler_load(const mw_compiler *compiler, const uint8_t *bytes, size_t length, size_t *ready, char *message, size_t message_size);


/* Matchers ----------------------------------------------------------------------------------------------------------------------- */

typedef struct mw_matcher mw_matcher;

/* A matcher at the beginning of a text. */
mw_status mw_matcher_new(const mw_compiled_constraint *constraint, mw_matcher **matcher, char *message, size_t message_size);

/* An independent matcher at the same place, with the same history. Reads matcher, so nobody may use it meanwhile. */
mw_status mw_matcher_fork(const mw_matcher *matcher, mw_matcher **copy, char *message, size_t message_size);

void mw_matcher_free(mw_matcher *matcher);

/* Writes which tokens may come next: bit t % 32 of word t / 32 is 1 if token t may. Tokens that end the text may where it is complete. After the end nothing may.
   Words beyond mw_vocabulary_mask_words are cleared. */
mw_status mw_matcher_fill_mask(mw_matcher *matcher, uint32_t *words, size_t word_count, char *message, size_t message_size);

/* The same for many matchers, in parallel: matcher i fills the stride words from words + i * stride on. No more than threads threads work at the same time, the
   calling one included; 0 is as many as the machine has. No matcher may come twice. What is wrong with one concerns no other: its row is cleared where it is long enough, its status is
   statuses[i], and the first such status is returned with its message. statuses may be NULL. */
mw_status mw_fill_masks(mw_matcher *const *matchers, size_t matcher_count, uint32_t *words, size_t stride, size_t threads,
                        mw_status *statuses, char *message, size_t message_size);

/* In place of a token: there is none to take. */
#define MW_SKIP UINT32_MAX

/* A step of a batch in one call: matcher i takes tokens[i], unless that is MW_SKIP, and then fills its row, in parallel, as mw_fill_masks does. If it refuses the token, it stays
   where it is, and so does its mask; its status says so. changed[i] tells whether its mask may be another one than its last; changed may be NULL. With keep_rows, a row whose mask has not changed is not written: it
   must still hold what the last step of its matcher wrote. */
mw_status mw_step_batch(mw_matcher *const *matchers, size_t matcher_count, const uint32_t *tokens, uint32_t *words, size_t stride,
                        int32_t keep_rows, size_t threads, uint8_t *changed, mw_status *statuses, char *message, size_t message_size);

/* Takes a token. If it is refused, nothing has changed. */
mw_status mw_matcher_accept(mw_matcher *matcher, uint32_t token, char *message, size_t message_size);

/* Takes some tokens: all of them, or none. */
mw_status mw_matcher_accept_tokens(mw_matcher *matcher, const uint32_t *tokens, size_t token_count,
                                   char *message, size_t message_size);

/* Takes some bytes of text, as one step. If they are refused, nothing has changed. */
mw_status mw_matcher_accept_bytes(mw_matcher *matcher, const uint8_t *bytes, size_t byte_count,
                                  char *message, size_t message_size);

/* How many of some tokens could be taken, one after the other. The matcher is unchanged. This is less work than a mask. */
mw_status mw_matcher_validate(mw_matcher *matcher, const uint32_t *tokens, size_t token_count, size_t *accepted,
                                char *message, size_t message_size);

/* The masks behind guessed tokens, for an engine that checks several in one step. Row 0, at words, is the mask of the matcher itself, and row i + 1, at words + (i + 1) * stride, the one behind tokens[i], which comes behind
   tokens[i - 1]. allowed[i] tells whether tokens[i] may come there; behind one that may not, rows are cleared. allowed may be NULL. There must be room for token_count + 1 rows. The matcher is unchanged. */
mw_status mw_matcher_fill_draft_chain(mw_matcher *matcher, const uint32_t *tokens, size_t token_count, uint32_t *words, size_t stride,
                                      uint8_t *allowed, char *message, size_t message_size);

/* In place of a parent: the token comes where the matcher stands. */
#define MW_ROOT UINT32_MAX

/* The same for a tree: tokens[i] comes behind tokens[parents[i]], which stands before it in the list, or where the matcher stands, if parents[i] is MW_ROOT. */
mw_status mw_matcher_fill_draft_tree(mw_matcher *matcher, const uint32_t *tokens, const uint32_t *parents, size_t token_count, uint32_t *words,
                                     size_t stride, uint8_t *allowed, char *message, size_t message_size);

/* Undoes the last steps: tokens, the end included, and calls of mw_matcher_accept_bytes. */
mw_status mw_matcher_rollback(mw_matcher *matcher, size_t steps, char *message, size_t message_size);

/* Back to the beginning of the text. A budget is lifted. */
mw_status mw_matcher_reset(mw_matcher *matcher, char *message, size_t message_size);

/* Where a text stands. What is at least MW_ACCEPTING is complete. */
enum {
    MW_OPEN = 0,      /* It is not complete. */
    MW_ACCEPTING = 1, /* It is complete, and may go on. */
    MW_STOPPED = 2,   /* It is complete, and nothing but the end can follow. */
    MW_TERMINATED = 3 /* The end was accepted. */
};

mw_status mw_matcher_state(mw_matcher *matcher, uint32_t *state, char *message, size_t message_size);

/* From now on only what can be completed within so many tokens, the one that ends the text included, is allowed, so no answer is cut off. MW_NO_BUDGET lifts
   it. MW_LIMIT if the text cannot be completed in so few, or if that is not known; then nothing has changed. */
mw_status mw_matcher_set_budget(mw_matcher *matcher, uint32_t tokens, char *message, size_t message_size);

#define MW_NO_BUDGET UINT32_MAX

/* The bytes that every complete text must go on with, as many as there is room for and at most 1,024. The matcher is unchanged. */
mw_status mw_matcher_forced_bytes(mw_matcher *matcher, uint8_t *bytes, size_t capacity, size_t *length,
                                  char *message, size_t message_size);

/* The tokens that the tokenizer itself has next in every complete text, as many as there is room for. before are the last tokens of the text so far,
   those of the prompt included; some thirty are enough. The matcher is unchanged. Without a tokenizer (see mw_tokens) no ordinary token is certain. */
mw_status mw_matcher_forced_tokens(mw_matcher *matcher, const uint32_t *before, size_t before_count,
                                   uint32_t *tokens, size_t capacity, size_t *count, char *message, size_t message_size);

/* All of that in one answer, as an object in JSON: completes (a list of bytes that complete a character which the text so far has begun), text (what must come behind them, as whole characters), and
   tokens (as mw_matcher_forced_tokens has them). The matcher is unchanged. */
mw_status mw_matcher_forced(mw_matcher *matcher, const uint32_t *before, size_t before_count, char *forced, size_t capacity, size_t *length,
                            char *message, size_t message_size);

/* The least number of tokens that complete the text, the one that ends it included; MW_NO_BUDGET if no way is known. The matcher is unchanged. */
mw_status mw_matcher_shortest_completion(mw_matcher *matcher, uint32_t *tokens, char *message, size_t message_size);

/* Why a token may come next or not, as an object in JSON: allowed, fitting (how many of its bytes fit), reason (a sentence), and then (what may stand behind the bytes that fit).
   The matcher is unchanged. */
mw_status mw_matcher_explain(mw_matcher *matcher, uint32_t token, char *explanation, size_t capacity, size_t *length,
                             char *message, size_t message_size);

/* Where a text stands under a constraint, in the terms of its grammar, as an object in JSON: path (the JSON pointer of the value that is being written, or null), readings (the rules
   that are open, each with the byte at which it began, and the terminal, with how much of it is matched), next (the terminals that may begin), complete, bytes and more (not all are listed).
   kind and text are those of mw_compile. The text is read again from its beginning: this is for people and logs, not for every token. MW_NOT_ALLOWED if the constraint does not allow the tokens. */
mw_status mw_locate(const mw_compiler *compiler, uint32_t kind, const char *text, size_t text_length, const uint32_t *tokens,
                    size_t token_count, char *location, size_t capacity, size_t *length, char *message, size_t message_size);

/* A schema as one regular expression of at most max_length bytes (0: as usual) that matches exactly the documents of the schema. languages is as in mw_compiler_options, and may be NULL. MW_CONSTRAINT if the
   schema is wrong, is not regular, or needs a longer expression. */
mw_status mw_schema_to_regex(const char *schema, size_t schema_length, const char *languages, size_t max_length,
                             char *regex, size_t capacity, size_t *length, char *message, size_t message_size);


/* Grammars with probabilities ---------------------------------------------------------------------------------------------------- */

/* How likely tokens are under a constraint of kind MW_PCFG. It follows one text, beside its matcher. One thread at a time. */
typedef struct mw_scorer mw_scorer;

/* At the beginning of a text. MW_ARGUMENT if the constraint has no probabilities. */
mw_status mw_scorer_new(const mw_compiled_constraint *constraint, mw_scorer **scorer, char *message, size_t message_size);

/* An independent scorer at the same place. */
mw_status mw_scorer_fork(mw_scorer *scorer, mw_scorer **copy, char *message, size_t message_size);

/* scores[i] becomes log P(tokens[i] | text so far); minus infinity for a token that may not come. */
mw_status mw_scorer_scores(mw_scorer *scorer, const uint32_t *tokens, size_t token_count, double *scores,
                           char *message, size_t message_size);

/* Takes a token. If it is refused, nothing has changed. */
mw_status mw_scorer_accept(mw_scorer *scorer, uint32_t token, char *message, size_t message_size);

/* Takes back the last tokens. */
mw_status mw_scorer_rollback(mw_scorer *scorer, size_t steps, char *message, size_t message_size);

/* The logarithm of the probability of all texts that begin like this one, and of this one itself; minus infinity if it is not complete. */
mw_status mw_scorer_logprob(mw_scorer *scorer, double *prefix, double *text, char *message, size_t message_size);

void mw_scorer_free(mw_scorer *scorer);


/* Tool calls --------------------------------------------------------------------------------------------------------------------- */

/* The structural tag of what a model may write, to be compiled as MW_STRUCTURAL_TAG and given to mw_reader_new. format is the name of a format of models, or the description of one in JSON. request
   is an object in JSON: tools (each with a name and parameters, regex, lark, ebnf or text), choice ("auto", "none", "required", {"name": ...} or {"allowed": [...], "required": ...}), one_call, thinking
   ("optional", "off", "required" or "begun"), answer and any_order. */
mw_status mw_tool_format_tag(const char *format, const char *request, char *tag, size_t capacity, size_t *length,
                             char *message, size_t message_size);

/* Reads what was written under a structural tag: text, reasoning and calls. One thread at a time. */
typedef struct mw_reader mw_reader;

/* vocabulary may be null; then the reader is fed with bytes only. */
mw_status mw_reader_new(const char *tag, const mw_vocabulary *vocabulary, mw_reader **reader, char *message, size_t message_size);

/* Reads some bytes, which may end inside of a character. */
mw_status mw_reader_feed(mw_reader *reader, const uint8_t *bytes, size_t byte_count, char *message, size_t message_size);

/* Reads some tokens: all of them, or none. */
mw_status mw_reader_feed_tokens(mw_reader *reader, const uint32_t *tokens, size_t token_count, char *message, size_t message_size);

/* Says that nothing follows. finish is 0 if the text is complete, 1 if it should have gone on, 2 if something in it was not what the tag asks for. */
mw_status mw_reader_finish(mw_reader *reader, int32_t *finish, char *message, size_t message_size);

/* What was found since the last call that ended well, as a list of objects in JSON, each with kind, text, and where there is one index and name. The kinds are text, reasoning, call, call_id, arguments,
   call_done, call_failed, tag, tag_text, tag_done and tag_failed. If it does not fit, nothing is lost: call again with more room. */
mw_status mw_reader_events(mw_reader *reader, char *events, size_t capacity, size_t *length, char *message, size_t message_size);

void mw_reader_free(mw_reader *reader);


/* Logits ------------------------------------------------------------------------------------------------------------------------- */

/* Writes minus infinity into the logits of the tokens whose bit is 0. There must be a bit for each logit. Any number of threads, on different logits. */
mw_status mw_apply_mask(float *logits, size_t logit_count, const uint32_t *words, size_t word_count,
                        char *message, size_t message_size);

#ifdef __cplusplus
}
#endif

#endif /* MASKWRIGHT_H */
