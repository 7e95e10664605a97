/* What a careless or hostile caller does: each call ends with a status, a sentence, and everything as it was. */
#include "small.h"

static mw_vocabulary *vocabulary;
static mw_compiler *compiler;
static mw_compiled_constraint *constraint;
static mw_matcher *matcher;
static mw_request *request;

/* The sentence must say this. */
#define SAID(text) CHECK(strstr(message, text) != NULL)

static void nulls(void) {
    uint32_t number = 7, words[SMALL_MASK];
    uint8_t bytes[8];
    size_t count = 7;
    float row[8] = {0};
    mw_statistics statistics = MW_STATISTICS_INIT;
    mw_tokens tokens = small_tokens();
    mw_vocabulary *v = (mw_vocabulary *)&number;
    mw_compiler *c = (mw_compiler *)&number;
    mw_compiled_constraint *k = (mw_compiled_constraint *)&number;
    mw_matcher *m = (mw_matcher *)&number;
    mw_request *r = (mw_request *)&number;

    EXPECT(MW_ARGUMENT, mw_vocabulary_load(NULL, NULL, &v, SAY));
    SAID("path is null");
    CHECK(v == NULL);
    EXPECT(MW_ARGUMENT, mw_vocabulary_load("x", NULL, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_new(NULL, NULL, &v, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_new(&tokens, NULL, NULL, SAY));
    CHECK(mw_vocabulary_size(NULL) == 0 && mw_vocabulary_mask_words(NULL) == 0);
    EXPECT(MW_ARGUMENT, mw_vocabulary_eos(NULL, &number, 1, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_eos(vocabulary, &number, 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_eos(vocabulary, NULL, 1, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_token(NULL, 0, &number, bytes, 8, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_token(vocabulary, 0, NULL, bytes, 8, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_token(vocabulary, 0, &number, bytes, 8, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_encode(NULL, "a", 1, &number, 1, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_encode(vocabulary, NULL, 1, &number, 1, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_decode(NULL, &number, 1, bytes, 8, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_decode(vocabulary, NULL, 1, bytes, 8, &count, SAY));

    EXPECT(MW_ARGUMENT, mw_compiler_new(NULL, NULL, &c, SAY));
    CHECK(c == NULL);
    EXPECT(MW_ARGUMENT, mw_compiler_new(vocabulary, NULL, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_compile(NULL, MW_REGEX, "a", 1, &k, SAY));
    CHECK(k == NULL);
    EXPECT(MW_ARGUMENT, mw_compile(compiler, MW_REGEX, NULL, 1, &k, SAY));
    SAID("text is null");
    EXPECT(MW_ARGUMENT, mw_compile(compiler, MW_REGEX, "a", 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_compile_choice(NULL, NULL, 0, &k, SAY));
    EXPECT(MW_ARGUMENT, mw_compile_choice(compiler, NULL, 2, &k, SAY));
    EXPECT(MW_ARGUMENT, mw_request_new(NULL, MW_REGEX, "a", 1, &r, SAY));
    EXPECT(MW_ARGUMENT, mw_request_new(compiler, MW_REGEX, "a", 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_request_wait(NULL, 1, &k, SAY));
    EXPECT(MW_ARGUMENT, mw_request_wait(request, 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_compiler_statistics(NULL, &statistics, SAY));
    EXPECT(MW_ARGUMENT, mw_compiler_statistics(compiler, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_compiler_prometheus(NULL, NULL, 0, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_compiler_prometheus(compiler, NULL, 0, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_compiled_constraint_remarks(NULL, NULL, 0, &count, SAY));

    EXPECT(MW_ARGUMENT, mw_matcher_new(NULL, &m, SAY));
    CHECK(m == NULL);
    EXPECT(MW_ARGUMENT, mw_matcher_new(constraint, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_fork(NULL, &m, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_fork(matcher, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_fill_mask(NULL, words, SMALL_MASK, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_fill_mask(matcher, NULL, SMALL_MASK, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_accept(NULL, 0, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_accept_tokens(NULL, &number, 1, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_accept_tokens(matcher, NULL, 1, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_accept_bytes(NULL, bytes, 1, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_accept_bytes(matcher, NULL, 1, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_validate(NULL, &number, 1, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_validate(matcher, NULL, 1, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_validate(matcher, &number, 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_rollback(NULL, 0, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_reset(NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_set_budget(NULL, 9, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_state(NULL, &number, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_state(matcher, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_forced_bytes(NULL, bytes, 8, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_forced_bytes(matcher, bytes, 8, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_forced_tokens(NULL, NULL, 0, &number, 1, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_forced_tokens(matcher, NULL, 1, &number, 1, &count, SAY));
    EXPECT(MW_ARGUMENT, mw_apply_mask(NULL, 8, words, SMALL_MASK, SAY));
    EXPECT(MW_ARGUMENT, mw_apply_mask(row, 8, NULL, SMALL_MASK, SAY));

    mw_vocabulary_free(NULL);
    mw_compiler_free(NULL);
    mw_compiled_constraint_free(NULL);
    mw_matcher_free(NULL);
    mw_request_free(NULL);
    /* Nothing of nothing is nothing. */
    EXPECT(MW_OK, mw_matcher_accept_tokens(matcher, NULL, 0, SAY));
    EXPECT(MW_OK, mw_apply_mask(NULL, 0, NULL, 0, SAY));
    EXPECT(MW_OK, mw_vocabulary_decode(vocabulary, NULL, 0, NULL, 0, &count, SAY));
    CHECK(count == 0);
}

static void messages(void) {
    char small[12];
    CHECK(mw_matcher_accept(matcher, word("x"), NULL, 0) == MW_NOT_ALLOWED);
    CHECK(mw_matcher_accept(matcher, word("x"), NULL, 100) == MW_NOT_ALLOWED);
    CHECK(mw_matcher_accept(matcher, word("x"), small, 0) == MW_NOT_ALLOWED);
    CHECK(mw_matcher_accept(matcher, word("x"), small, sizeof small) == MW_NOT_ALLOWED);
    CHECK(strcmp(small, "token 120: ") == 0);
    CHECK(mw_matcher_accept(matcher, word("x"), small, 1) == MW_NOT_ALLOWED && small[0] == 0);
    CHECK(mw_matcher_accept(matcher, word("x"), small, SIZE_MAX) == MW_NOT_ALLOWED);
    /* What succeeds says nothing. */
    strcpy(small, "before");
    CHECK(mw_matcher_rollback(matcher, 0, small, sizeof small) == MW_OK && strcmp(small, "before") == 0);
    CHECK(strcmp(mw_status_name(-5), "unknown status") == 0 && strcmp(mw_status_name(15), "unknown status") == 0);
}

static void buffers(void) {
    uint32_t words[SMALL_MASK], tokens[4];
    unsigned char raw[64];
    uint8_t bytes[4];
    size_t count = 0;
    uint32_t kind;
    float row[64] = {0};
    char *odd = (char *)raw + ((size_t)raw % 2 == 0 ? 1 : 0);

    EXPECT(MW_TOO_SHORT, mw_matcher_fill_mask(matcher, words, SMALL_MASK - 1, SAY));
    SAID("needs 5 words");
    EXPECT(MW_TOO_SHORT, mw_matcher_fill_mask(matcher, words, 0, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_fill_mask(matcher, words, SIZE_MAX, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_fill_mask(matcher, words, SIZE_MAX / 4 + 2, SAY));
    SAID("cannot have");
    EXPECT(MW_ARGUMENT, mw_matcher_fill_mask(matcher, (uint32_t *)(void *)odd, SMALL_MASK, SAY));
    SAID("words is not aligned");
    EXPECT(MW_TOO_SHORT, mw_apply_mask(row, 64, words, 1, SAY));
    EXPECT(MW_TOO_SHORT, mw_vocabulary_eos(vocabulary, NULL, 0, &count, SAY));
    CHECK(count == 1);
    tokens[0] = 99;
    EXPECT(MW_TOO_SHORT, mw_vocabulary_encode(vocabulary, "x, yes", 6, tokens, 3, &count, SAY));
    CHECK(count == 4 && tokens[0] == 99);
    EXPECT(MW_TOO_SHORT, mw_vocabulary_token(vocabulary, SMALL_TOOL, &kind, bytes, 4, &count, SAY));
    CHECK(count == 6);
    tokens[0] = tokens[1] = word("yes");
    EXPECT(MW_TOO_SHORT, mw_vocabulary_decode(vocabulary, tokens, 2, bytes, 4, &count, SAY));
    CHECK(count == 6);
}

static void structs(void) {
    struct {
        mw_compiler_options known;
        size_t more;
    } newer = {MW_COMPILER_OPTIONS_INIT, 0};
    struct {
        mw_statistics known;
        uint64_t more[2];
    } wide = {MW_STATISTICS_INIT, {5, 5}};
    mw_compiler_options options = MW_COMPILER_OPTIONS_INIT;
    mw_vocabulary_options names = MW_VOCABULARY_OPTIONS_INIT;
    mw_statistics statistics = MW_STATISTICS_INIT;
    mw_tokens tokens = small_tokens();
    mw_compiler *c;
    mw_vocabulary *v;
    uint32_t eos[] = {SMALL_COUNT};

    options.struct_size = 0;
    EXPECT(MW_ARGUMENT, mw_compiler_new(vocabulary, &options, &c, SAY));
    SAID("set it to sizeof(mw_compiler_options)");
    options.struct_size = SIZE_MAX;
    EXPECT(MW_ARGUMENT, mw_compiler_new(vocabulary, &options, &c, SAY));
    statistics.struct_size = 4;
    EXPECT(MW_ARGUMENT, mw_compiler_statistics(compiler, &statistics, SAY));
    tokens.struct_size = 1;
    EXPECT(MW_ARGUMENT, mw_vocabulary_new(&tokens, NULL, &v, SAY));

    /* A caller with a newer header: welcome as long as it asks for nothing new. */
    newer.known.struct_size = sizeof newer;
    newer.known.workers = 1;
    EXPECT(MW_OK, mw_compiler_new(vocabulary, (mw_compiler_options *)(void *)&newer, &c, SAY));
    mw_compiler_free(c);
    newer.more = 1;
    EXPECT(MW_ARGUMENT, mw_compiler_new(vocabulary, (mw_compiler_options *)(void *)&newer, &c, SAY));
    SAID("does not know");
    wide.known.struct_size = sizeof wide;
    EXPECT(MW_OK, mw_compiler_statistics(compiler, (mw_statistics *)(void *)&wide, SAY));
    CHECK(wide.known.struct_size == sizeof wide && wide.more[0] == 0 && wide.more[1] == 0);

    options = newer.known;
    options.struct_size = sizeof options;
    options.languages = "{\"json_schema\": {\"whitespce\": \"compact\"}}";
    EXPECT(MW_ARGUMENT, mw_compiler_new(vocabulary, &options, &c, SAY));
    SAID("there is no option json_schema.whitespce");
    options.languages = "{\"json_schema\": \xFF}";
    EXPECT(MW_ARGUMENT, mw_compiler_new(vocabulary, &options, &c, SAY));
    SAID("options.languages is not UTF-8");

    tokens = small_tokens();
    names.eos = eos;
    names.eos_count = 1;
    EXPECT(MW_VOCABULARY, mw_vocabulary_new(&tokens, &names, &v, SAY));
    SAID("there are only 142 tokens");
    names.eos_count = 0;
    names.size = (size_t)1 << 40;
    EXPECT(MW_VOCABULARY, mw_vocabulary_new(&tokens, &names, &v, SAY));
    tokens.count = 0;
    EXPECT(MW_VOCABULARY, mw_vocabulary_new(&tokens, NULL, &v, SAY));
    tokens = small_tokens();
    tokens.lengths = NULL;
    EXPECT(MW_ARGUMENT, mw_vocabulary_new(&tokens, NULL, &v, SAY));
    tokens = small_tokens();
    tokens.bytes = NULL;
    EXPECT(MW_ARGUMENT, mw_vocabulary_new(&tokens, NULL, &v, SAY));
    tokens = small_tokens();
    ((uint8_t *)(size_t)tokens.kinds)[5] = 9;
    EXPECT(MW_ARGUMENT, mw_vocabulary_new(&tokens, NULL, &v, SAY));
    SAID("token 5 is of kind 9");
}

static void constraints(void) {
    static const char garbage[] = "a\xC3(", *const bad_choices[] = {"yes", "\xFF"}, *const missing[] = {"yes", NULL};
    static const char bomb[] = "(((a{1,999}){1,999}){1,999}&b)";
    static const char draft_3[] = "{\"$schema\": \"http://json-schema.org/draft-03/schema#\"}";
    mw_compiled_constraint *k;
    EXPECT(MW_ARGUMENT, mw_compile(compiler, 0, "a", 1, &k, SAY));
    EXPECT(MW_ARGUMENT, mw_compile(compiler, 9, "a", 1, &k, SAY));
    SAID("no kind of constraint 9");
    EXPECT(MW_ARGUMENT, mw_compile(compiler, MW_REGEX, garbage, 3, &k, SAY));
    SAID("text is not UTF-8: wrong byte at 1");
    EXPECT(MW_ARGUMENT, mw_compile(compiler, MW_REGEX, garbage, SIZE_MAX, &k, SAY));
    EXPECT(MW_CONSTRAINT, mw_compile(compiler, MW_REGEX, "(a", 2, &k, SAY));
    CHECK(k == NULL && strlen(message) > 10);
    EXPECT(MW_CONSTRAINT, mw_compile(compiler, MW_JSON_SCHEMA, "{\"type\": 7}", 11, &k, SAY));
    EXPECT(MW_CONSTRAINT, mw_compile(compiler, MW_JSON_SCHEMA, "", 0, &k, SAY));
    EXPECT(MW_UNSUPPORTED, mw_compile(compiler, MW_JSON_SCHEMA, draft_3, strlen(draft_3), &k, SAY));
    CHECK(k == NULL && strstr(message, "/$schema") != NULL);
    EXPECT(MW_CONSTRAINT, mw_compile(compiler, MW_LARK, "start: missing", 14, &k, SAY));
    SAID("missing");
    EXPECT(MW_CONSTRAINT, mw_compile(compiler, MW_CHOICE, "[1]", 3, &k, SAY));
    EXPECT(MW_CONSTRAINT, mw_compile(compiler, MW_STRUCTURAL_TAG, "[]", 2, &k, SAY));
    EXPECT(MW_CONSTRAINT, mw_compile(compiler, MW_PCFG, "S -> a [0.5] | b [0.6]", 22, &k, SAY));
    SAID("add up to 1.1");
    EXPECT(MW_CONSTRAINT, mw_compile(compiler, MW_PCFG, "S -> S", 6, &k, SAY));
    EXPECT(MW_ARGUMENT, mw_compile_choice(compiler, bad_choices, 2, &k, SAY));
    EXPECT(MW_ARGUMENT, mw_compile_choice(compiler, missing, 2, &k, SAY));
    EXPECT(MW_CONSTRAINT, mw_compile_choice(compiler, NULL, 0, &k, SAY));
    /* Whatever becomes of this one, it ends. */
    if (mw_compile(compiler, MW_REGEX, bomb, sizeof bomb - 1, &k, SAY) == MW_OK) mw_compiled_constraint_free(k);
}

/* In a batch a limit concerns one row. */
static void batch_with(mw_matcher *limited) {
    mw_compiled_constraint *k;
    mw_matcher *batch[12];
    uint32_t words[COUNT(batch) * SMALL_MASK];
    mw_status statuses[COUNT(batch)];
    size_t i;
    EXPECT(MW_OK, mw_compile(compiler, MW_REGEX, "yes", 3, &k, SAY));
    for (i = 0; i < COUNT(batch); i++) EXPECT(MW_OK, mw_matcher_new(k, &batch[i], SAY));
    mw_compiled_constraint_free(k);
    mw_matcher_free(batch[9]);
    batch[9] = limited;
    memset(words, 255, sizeof words);
    EXPECT(MW_LIMIT, mw_fill_masks(batch, COUNT(batch), words, SMALL_MASK, 2, statuses, SAY));
    SAID("row 9: ");
    for (i = 0; i < COUNT(batch); i++) {
        CHECK(statuses[i] == (i == 9 ? MW_LIMIT : MW_OK));
        CHECK(allows(words + i * SMALL_MASK, word("yes")) == (i != 9) && !allows(words + i * SMALL_MASK, word("no")));
    }
    /* What is wrong with the call is said before anything is filled. */
    memset(words, 255, sizeof words);
    EXPECT(MW_TOO_SHORT, mw_fill_masks(batch, COUNT(batch), words, 0, 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_fill_masks(batch, COUNT(batch), words, SIZE_MAX, 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_fill_masks(batch, COUNT(batch), NULL, SMALL_MASK, 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_fill_masks(NULL, COUNT(batch), words, SMALL_MASK, 1, NULL, SAY));
    batch[9] = batch[3];
    EXPECT(MW_ARGUMENT, mw_fill_masks(batch, COUNT(batch), words, SMALL_MASK, 1, statuses, SAY));
    SAID("twice");
    batch[9] = NULL;
    EXPECT(MW_ARGUMENT, mw_fill_masks(batch, COUNT(batch), words, SMALL_MASK, 1, statuses, SAY));
    for (i = 0; i < COUNT(words); i++) CHECK(words[i] == UINT32_MAX);
    /* A row that is too short is left alone. */
    EXPECT(MW_TOO_SHORT, mw_fill_masks(batch, 9, words, SMALL_MASK - 1, 1, statuses, SAY));
    CHECK(statuses[0] == MW_TOO_SHORT && statuses[8] == MW_TOO_SHORT && words[0] == UINT32_MAX);
    for (i = 0; i < COUNT(batch); i++) mw_matcher_free(batch[i]);
}

/* A limit that is met while a text is matched: the call fails, and the matcher is as before. */
static void steps(void) {
    static const char grammar[] = "root ::= r\nr ::= (\"yes\" (\"no\" | r) (r | \"n\")){0,4}";
    mw_compiler_options options = MW_COMPILER_OPTIONS_INIT;
    mw_compiler *c;
    mw_compiled_constraint *k;
    mw_matcher *m;
    uint32_t words[SMALL_MASK], state, token = word("yes");
    size_t count;
    options.mask_steps = 5;
    EXPECT(MW_OK, mw_compiler_new(vocabulary, &options, &c, SAY));
    EXPECT(MW_OK, mw_compile(c, MW_EBNF, grammar, sizeof grammar - 1, &k, SAY));
    EXPECT(MW_OK, mw_matcher_new(k, &m, SAY));
    EXPECT(MW_LIMIT, mw_matcher_fill_mask(m, words, SMALL_MASK, SAY));
    SAID("mask_steps");
    EXPECT(MW_LIMIT, mw_matcher_accept(m, token, SAY));
    SAID("more than 5 steps");
    EXPECT(MW_LIMIT, mw_matcher_validate(m, &token, 1, &count, SAY));
    batch_with(m);
    EXPECT(MW_OK, mw_matcher_state(m, &state, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_rollback(m, 1, SAY));
    mw_matcher_free(m);
    mw_compiled_constraint_free(k);
    mw_compiler_free(c);
    /* A caller with the header of before, which has no such field. */
    options.struct_size = offsetof(mw_compiler_options, mask_steps);
    EXPECT(MW_OK, mw_compiler_new(vocabulary, &options, &c, SAY));
    EXPECT(MW_OK, mw_compile(c, MW_EBNF, grammar, sizeof grammar - 1, &k, SAY));
    EXPECT(MW_OK, mw_matcher_new(k, &m, SAY));
    EXPECT(MW_OK, mw_matcher_fill_mask(m, words, SMALL_MASK, SAY));
    EXPECT(MW_OK, mw_matcher_accept(m, token, SAY));
    mw_matcher_free(m);
    mw_compiled_constraint_free(k);
    mw_compiler_free(c);
}

/* Limits of a compiler, and a request that nobody waits for. */
static void limits(void) {
    mw_compiler_options options = MW_COMPILER_OPTIONS_INIT;
    mw_statistics statistics = MW_STATISTICS_INIT;
    mw_compiler *c;
    mw_compiled_constraint *k;
    mw_request *r;
    size_t length = 0, n;
    char *schema = (char *)malloc(200 * 100);
    CHECK(schema != NULL);
    options.compile_bytes = 1000;
    EXPECT(MW_OK, mw_compiler_new(vocabulary, &options, &c, SAY));
    EXPECT(MW_LIMIT, mw_compile(c, MW_REGEX, "yes or no", 9, &k, SAY));
    SAID("more than the limit of 5");
    mw_compiler_free(c);

    /* Each branch alone takes longer than that, and there are many of them. */
    length += (size_t)sprintf(schema, "{\"type\": \"string\", \"anyOf\": [");
    for (n = 1; n < 200; n++)
        length += (size_t)sprintf(schema + length, "%s{\"pattern\": \"^(a|b)*a(a|b){%d}$\", \"not\": {\"pattern\": \"b(a|b){%d}c\"}}", n > 1 ? "," : "", (int)n + 12, (int)n);
    length += (size_t)sprintf(schema + length, "]}");
    options.compile_bytes = 0;
    options.timeout_ms = 50;
    options.workers = 1;
    EXPECT(MW_OK, mw_compiler_new(vocabulary, &options, &c, SAY));
    EXPECT(MW_TIMEOUT, mw_compile(c, MW_JSON_SCHEMA, schema, length, &k, SAY));
    SAID("50ms");
    EXPECT(MW_TIMEOUT, mw_compile(c, MW_JSON_SCHEMA, schema, length, &k, SAY));
    EXPECT(MW_OK, mw_compiler_statistics(c, &statistics, SAY));
    CHECK(statistics.too_long == 1 && statistics.requests_known_failure == 1);
    mw_compiler_free(c);

    options.timeout_ms = 60000;
    EXPECT(MW_OK, mw_compiler_new(vocabulary, &options, &c, SAY));
    EXPECT(MW_OK, mw_request_new(c, MW_JSON_SCHEMA, schema, length, &r, SAY));
    EXPECT(MW_PENDING, mw_request_wait(r, 1, &k, SAY));
    CHECK(k == NULL);
    mw_request_free(r);
    /* The worker has given it up, and is free for others. */
    EXPECT(MW_OK, mw_compile(c, MW_REGEX, "yes", 3, &k, SAY));
    mw_compiled_constraint_free(k);
    mw_compiler_free(c);
    free(schema);
    steps();
}

static void tokens(void) {
    uint32_t list[3], words[SMALL_MASK];
    size_t count;
    EXPECT(MW_NO_TOKEN, mw_matcher_accept(matcher, SMALL_COUNT, SAY));
    SAID("there is no token 142: the vocabulary has 142 ids");
    EXPECT(MW_NO_TOKEN, mw_matcher_accept(matcher, UINT32_MAX, SAY));
    EXPECT(MW_NOT_ALLOWED, mw_matcher_accept(matcher, SMALL_GAP, SAY));
    EXPECT(MW_NOT_ALLOWED, mw_matcher_accept(matcher, SMALL_TOOL, SAY));
    EXPECT(MW_NOT_ALLOWED, mw_matcher_accept(matcher, SMALL_END, SAY));
    SAID("not complete");
    list[0] = word("y");
    list[1] = word("e");
    list[2] = UINT32_MAX;
    EXPECT(MW_NO_TOKEN, mw_matcher_accept_tokens(matcher, list, 3, SAY));
    SAID("number 2 of 3");
    EXPECT(MW_OK, mw_matcher_validate(matcher, list, 3, &count, SAY));
    CHECK(count == 2);
    EXPECT(MW_NO_TOKEN, mw_vocabulary_decode(vocabulary, list, 3, NULL, 0, &count, SAY));
    EXPECT(MW_NOT_ALLOWED, mw_matcher_accept_bytes(matcher, (const uint8_t *)"\xFF\xFE", 2, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_rollback(matcher, 1, SAY));
    SAID("only 0 steps");
    EXPECT(MW_ARGUMENT, mw_matcher_rollback(matcher, SIZE_MAX, SAY));
    EXPECT(MW_ARGUMENT, mw_vocabulary_encode(vocabulary, "\xC3", 1, list, 3, &count, SAY));
    EXPECT(MW_VOCABULARY, mw_vocabulary_encode(vocabulary, "\xC3\xB6", 2, list, 3, &count, SAY));
    /* After all that it is where it was. */
    EXPECT(MW_OK, mw_matcher_fill_mask(matcher, words, SMALL_MASK, SAY));
    CHECK(allows(words, word("yes")) && !allows(words, SMALL_END));
    EXPECT(MW_OK, mw_matcher_accept(matcher, word("yes"), SAY));
    EXPECT(MW_OK, mw_matcher_accept(matcher, SMALL_END, SAY));
    EXPECT(MW_NOT_ALLOWED, mw_matcher_accept(matcher, SMALL_END, SAY));
    EXPECT(MW_NOT_ALLOWED, mw_matcher_accept(matcher, word("y"), SAY));
    EXPECT(MW_OK, mw_matcher_rollback(matcher, 2, SAY));
}

/* A function that cuts text and cannot count. */
static size_t liar(const void *data, const char *text, size_t length, uint32_t *list, size_t capacity) {
    (void)data;
    (void)text;
    (void)length;
    if (capacity > 0) list[0] = UINT32_MAX;
    return *(const size_t *)data;
}

static void liars(void) {
    static const size_t counts[] = {0, 1, 2, 1000000, SIZE_MAX};
    size_t i, count;
    for (i = 0; i < COUNT(counts); i++) {
        mw_tokens list = small_tokens();
        mw_vocabulary *v;
        uint32_t buffer[4];
        list.encode = liar;
        list.encode_data = &counts[i];
        EXPECT(MW_OK, mw_vocabulary_new(&list, NULL, &v, SAY));
        EXPECT(MW_VOCABULARY, mw_vocabulary_encode(v, "yes", 3, buffer, 4, &count, SAY));
        SAID("do not spell");
        mw_vocabulary_free(v);
    }
}

int main(void) {
    mw_vocabulary *v;
    mw_compiled_constraint *k;
    vocabulary = small_vocabulary();
    EXPECT(MW_OK, mw_compiler_new(vocabulary, NULL, &compiler, SAY));
    EXPECT(MW_OK, mw_compile(compiler, MW_REGEX, "yes", 3, &constraint, SAY));
    EXPECT(MW_OK, mw_matcher_new(constraint, &matcher, SAY));
    EXPECT(MW_OK, mw_request_new(compiler, MW_REGEX, "no", 2, &request, SAY));
    EXPECT(MW_FILE, mw_vocabulary_load("/no/such/tokenizer.json", NULL, &v, SAY));
    SAID("/no/such/tokenizer.json");
    nulls();
    messages();
    buffers();
    structs();
    constraints();
    limits();
    tokens();
    liars();
    /* A request that outlives its compiler has been answered, or never will be. */
    mw_compiler_free(compiler);
    if (mw_request_wait(request, 1, &k, SAY) == MW_OK) mw_compiled_constraint_free(k);
    mw_request_free(request);
    mw_compiled_constraint_free(constraint);
    mw_vocabulary_free(vocabulary);
    EXPECT(MW_OK, mw_matcher_accept(matcher, word("yes"), SAY));
    mw_matcher_free(matcher);
    printf("all is well\n");
    return 0;
}
