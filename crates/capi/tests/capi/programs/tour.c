/* Every function once, as it is meant. */
#include <math.h>

#include "small.h"

static int near(double a, double b) {
    return a - b < 1e-9 && b - a < 1e-9;
}

static mw_matcher *start(const mw_compiler *compiler, uint32_t kind, const char *text) {
    mw_compiled_constraint *constraint;
    mw_matcher *matcher;
    EXPECT(MW_OK, mw_compile(compiler, kind, text, strlen(text), &constraint, SAY));
    EXPECT(MW_OK, mw_matcher_new(constraint, &matcher, SAY));
    mw_compiled_constraint_free(constraint);
    return matcher;
}

/* A constraint of each kind, with a text that it accepts whole and one of which it refuses the last character. */
static void kinds(const mw_compiler *compiler) {
    static const struct {
        uint32_t kind;
        const char *source, *good, *bad;
    } cases[] = {
        {MW_REGEX, "[a-c]{2,3}", "abc", "d"},
        {MW_CHOICE, "[\"yes\", \"no\", \"na\\u00efve\"]", "yes", "yen"},
        {MW_EBNF, "root ::= \"(\" root \")\" | \"x\"", "((x))", "(()"},
        {MW_GBNF, "root ::= [0-9]+ (\",\" [0-9]+)*", "1,23,4", "1,,"},
        {MW_LARK, "start: NAME \"=\" NAME\nNAME: /[a-z]+/", "a=b", "a=="},
        {MW_JSON_SCHEMA, "{\"type\": \"array\", \"items\": {\"type\": \"boolean\"}, \"maxItems\": 2}", "[true,false]", "[true,false,"},
        {MW_STRUCTURAL_TAG,
         "{\"type\": \"structural_tag\", \"format\": {\"type\": \"tag\", \"begin\": \"<a>\", \"content\": {\"type\": \"regex\", \"pattern\": \"[0-9]+\"}, \"end\": \"</a>\"}}",
         "<a>12</a>", "<a>x"},
        {MW_PCFG, "S -> D [0.5] | D \"+\" S [0.5]\nD -> tea [0.75] | milk [0.25]", "tea+milk", "tea+n"},
    };
    size_t i;
    for (i = 0; i < COUNT(cases); i++) {
        mw_matcher *matcher = start(compiler, cases[i].kind, cases[i].source);
        size_t length = strlen(cases[i].good), accepted;
        uint32_t tokens[64], j;
        EXPECT(MW_OK, mw_matcher_accept_bytes(matcher, (const uint8_t *)cases[i].good, length, SAY));
        CHECK(state_of(matcher) >= MW_ACCEPTING);
        EXPECT(MW_OK, mw_matcher_rollback(matcher, 1, SAY));
        CHECK(state_of(matcher) == MW_OPEN);
        length = strlen(cases[i].bad);
        for (j = 0; j < length; j++) tokens[j] = (uint32_t)(unsigned char)cases[i].bad[j];
        EXPECT(MW_OK, mw_matcher_validate(matcher, tokens, length, &accepted, SAY));
        CHECK(accepted == length - 1);
        mw_matcher_free(matcher);
    }
}

/* A text from its beginning to its end, and back. */
static void text(const mw_compiler *compiler) {
    mw_matcher *matcher = start(compiler, MW_REGEX, "the answer is (yes|no!?)"), *copy;
    uint32_t words[SMALL_MASK + 1], tokens[8], before[1];
    uint8_t bytes[64];
    size_t count, i;
    before[0] = word("a");

    EXPECT(MW_OK, mw_matcher_forced_bytes(matcher, bytes, sizeof bytes, &count, SAY));
    CHECK(count == 14 && memcmp(bytes, "the answer is ", 14) == 0);
    EXPECT(MW_OK, mw_matcher_forced_bytes(matcher, bytes, 3, &count, SAY));
    CHECK(count == 3);
    EXPECT(MW_OK, mw_matcher_forced_tokens(matcher, before, 1, tokens, COUNT(tokens), &count, SAY));
    CHECK(count >= 1 && tokens[0] == word("the "));
    EXPECT(MW_OK, mw_matcher_forced_tokens(matcher, before, 1, tokens, 0, &count, SAY));
    CHECK(count == 0);

    tokens[0] = word("the ");
    tokens[1] = word("answer");
    tokens[2] = word(" is ");
    EXPECT(MW_OK, mw_matcher_accept_tokens(matcher, tokens, 3, SAY));
    words[SMALL_MASK] = 77;
    EXPECT(MW_OK, mw_matcher_fill_mask(matcher, words, COUNT(words), SAY));
    CHECK(words[SMALL_MASK] == 0);
    for (i = 0; i < SMALL_COUNT; i++) {
        int expected = i == word("yes") || i == word("no") || i == word("y") || i == word("n");
        CHECK(allows(words, (uint32_t)i) == expected);
    }
    CHECK(state_of(matcher) == MW_OPEN);

    EXPECT(MW_OK, mw_matcher_accept(matcher, word("no"), SAY));
    CHECK(state_of(matcher) == MW_ACCEPTING);
    EXPECT(MW_OK, mw_matcher_fork(matcher, &copy, SAY));
    EXPECT(MW_OK, mw_matcher_accept(copy, word("!"), SAY));
    CHECK(state_of(copy) == MW_STOPPED);
    EXPECT(MW_OK, mw_matcher_accept(copy, SMALL_END, SAY));
    CHECK(state_of(copy) == MW_TERMINATED);
    CHECK(state_of(matcher) == MW_ACCEPTING);
    mw_matcher_free(matcher);

    EXPECT(MW_OK, mw_matcher_rollback(copy, 2, SAY));
    CHECK(state_of(copy) == MW_ACCEPTING);
    EXPECT(MW_OK, mw_matcher_reset(copy, SAY));
    CHECK(state_of(copy) == MW_OPEN);
    EXPECT(MW_OK, mw_matcher_accept(copy, word("the "), SAY));
    mw_matcher_free(copy);
}

/* With a budget a text comes to its end. */
static void budgets(const mw_compiler *compiler) {
    mw_matcher *matcher = start(compiler, MW_REGEX, "[a-z]*!");
    uint32_t words[SMALL_MASK], i, left;
    EXPECT(MW_LIMIT, mw_matcher_set_budget(matcher, 1, SAY));
    CHECK(strstr(message, "2 are needed") != NULL);
    EXPECT(MW_OK, mw_matcher_set_budget(matcher, 4, SAY));
    for (left = 4; left > 0; left--) {
        EXPECT(MW_OK, mw_matcher_fill_mask(matcher, words, SMALL_MASK, SAY));
        for (i = 0; i < SMALL_COUNT; i++) {
            int is_letter = (i >= 'a' && i <= 'z') || i == word("yes") || i == word("no") || i == word("answer") || i == word("true") ||
                            i == word("false") || i == word("name");
            CHECK(allows(words, i) == (left > 2 ? is_letter || i == '!' : left == 2 ? i == '!' : i == SMALL_END));
        }
        EXPECT(MW_OK, mw_matcher_accept(matcher, left > 2 ? word("answer") : left == 2 ? word("!") : (uint32_t)SMALL_END, SAY));
    }
    CHECK(state_of(matcher) == MW_TERMINATED);
    EXPECT(MW_OK, mw_matcher_rollback(matcher, 2, SAY));
    EXPECT(MW_NOT_ALLOWED, mw_matcher_accept(matcher, word("a"), SAY));
    EXPECT(MW_OK, mw_matcher_set_budget(matcher, MW_NO_BUDGET, SAY));
    EXPECT(MW_OK, mw_matcher_accept(matcher, word("a"), SAY));
    mw_matcher_free(matcher);
}

/* Many masks at once are what they are one by one. */
static void batches(const mw_compiler *compiler) {
    enum { ROWS = 50, STRIDE = SMALL_MASK + 1 };
    static const char *const texts[] = {"", "y", "ye", "yes"};
    mw_matcher *matchers[ROWS];
    uint32_t words[ROWS * STRIDE], one[STRIDE], tokens[ROWS];
    uint8_t changed[ROWS];
    mw_status statuses[ROWS];
    size_t i, threads;
    for (i = 0; i < ROWS; i++) {
        const char *text = texts[i % COUNT(texts)];
        matchers[i] = start(compiler, MW_REGEX, "yes(, yes)*");
        EXPECT(MW_OK, mw_matcher_accept_bytes(matchers[i], (const uint8_t *)text, strlen(text), SAY));
    }
    for (threads = 0; threads <= 4; threads++) {
        memset(words, 255, sizeof words);
        memset(statuses, 255, sizeof statuses);
        EXPECT(MW_OK, mw_fill_masks(matchers, ROWS, words, STRIDE, threads, threads == 2 ? NULL : statuses, SAY));
        for (i = 0; i < ROWS; i++) {
            EXPECT(MW_OK, mw_matcher_fill_mask(matchers[i], one, STRIDE, SAY));
            CHECK(memcmp(one, words + i * STRIDE, sizeof one) == 0 && words[i * STRIDE + SMALL_MASK] == 0);
            CHECK(threads == 2 || statuses[i] == MW_OK);
        }
    }
    /* The token that may come next differs from row to row. */
    CHECK(allows(words, word("yes")) && !allows(words + STRIDE, word("yes")) && allows(words + STRIDE, word("e")));
    EXPECT(MW_OK, mw_fill_masks(NULL, 0, NULL, 0, 0, NULL, SAY));
    /* A step takes a token first. Rows that have not changed are not written. */
    memset(words, 255, sizeof words);
    for (i = 0; i < ROWS; i++) tokens[i] = i % 4 == 1 ? word("e") : i % 4 == 2 ? word("n") : MW_SKIP;
    EXPECT(MW_NOT_ALLOWED, mw_step_batch(matchers, ROWS, tokens, words, STRIDE, 0, 2, changed, statuses, SAY));
    for (i = 0; i < ROWS; i++) {
        CHECK(statuses[i] == (i % 4 == 2 ? MW_NOT_ALLOWED : MW_OK));
        /* "y" has taken "e", and "ye" has refused "n". */
        CHECK(allows(words + i * STRIDE, word("s")) == (i % 4 == 1 || i % 4 == 2));
        CHECK(allows(words + i * STRIDE, word("yes")) == (i % 4 == 0));
        CHECK(words[i * STRIDE + SMALL_MASK] == 0);
    }
    for (i = 0; i < ROWS; i++) tokens[i] = i % 4 == 0 ? word("y") : MW_SKIP;
    EXPECT(MW_OK, mw_step_batch(matchers, ROWS, tokens, words, STRIDE, 0, 0, changed, NULL, SAY));
    memset(words, 255, sizeof words);
    for (i = 0; i < ROWS; i++) tokens[i] = i % 4 == 0 ? word("e") : MW_SKIP;
    EXPECT(MW_OK, mw_step_batch(matchers, ROWS, tokens, words, STRIDE, 1, 3, changed, statuses, SAY));
    for (i = 0; i < ROWS; i++) {
        CHECK(changed[i] == (i % 4 == 0));
        CHECK(words[i * STRIDE + SMALL_MASK] == (changed[i] ? 0 : UINT32_MAX));
        CHECK(!changed[i] || allows(words + i * STRIDE, word("s")));
    }
    EXPECT(MW_ARGUMENT, mw_step_batch(matchers, ROWS, NULL, words, STRIDE, 1, 3, NULL, NULL, SAY));
    for (i = 0; i < ROWS; i++) mw_matcher_free(matchers[i]);
}

static void logits(const mw_compiler *compiler) {
    mw_matcher *matcher = start(compiler, MW_REGEX, "yes");
    uint32_t words[SMALL_MASK], i;
    float row[SMALL_COUNT];
    EXPECT(MW_OK, mw_matcher_fill_mask(matcher, words, SMALL_MASK, SAY));
    for (i = 0; i < SMALL_COUNT; i++) row[i] = (float)i;
    EXPECT(MW_OK, mw_apply_mask(row, SMALL_COUNT, words, SMALL_MASK, SAY));
    for (i = 0; i < SMALL_COUNT; i++) {
        if (i == word("yes") || i == word("y"))
            CHECK(row[i] >= (float)i && row[i] <= (float)i);
        else
            CHECK(row[i] < -1e38f);
    }
    mw_matcher_free(matcher);
}

static void vocabulary(const mw_vocabulary *vocabulary) {
    uint32_t tokens[8], kind;
    uint8_t bytes[16];
    size_t count;
    CHECK(mw_vocabulary_size(vocabulary) == SMALL_COUNT && mw_vocabulary_mask_words(vocabulary) == SMALL_MASK);
    EXPECT(MW_OK, mw_vocabulary_eos(vocabulary, tokens, COUNT(tokens), &count, SAY));
    CHECK(count == 1 && tokens[0] == SMALL_END);
    EXPECT(MW_OK, mw_vocabulary_token(vocabulary, SMALL_TOOL, &kind, bytes, sizeof bytes, &count, SAY));
    CHECK(kind == MW_TOKEN_SPECIAL && count == 6 && memcmp(bytes, "<tool>", 6) == 0);
    EXPECT(MW_OK, mw_vocabulary_token(vocabulary, word("yes"), &kind, bytes, sizeof bytes, &count, SAY));
    CHECK(kind == MW_TOKEN_ORDINARY && count == 3 && memcmp(bytes, "yes", 3) == 0);
    EXPECT(MW_OK, mw_vocabulary_token(vocabulary, SMALL_GAP, &kind, bytes, sizeof bytes, &count, SAY));
    CHECK(kind == MW_TOKEN_UNUSED && count == 0);
    EXPECT(MW_OK, mw_vocabulary_encode(vocabulary, "yes, \xC3\xA9", 7, tokens, COUNT(tokens), &count, SAY));
    CHECK(count == 4 && tokens[0] == word("yes") && tokens[3] == word("\xC3\xA9"));
    EXPECT(MW_OK, mw_vocabulary_decode(vocabulary, tokens, 4, bytes, sizeof bytes, &count, SAY));
    CHECK(count == 7 && memcmp(bytes, "yes, \xC3\xA9", 7) == 0);
}

/* A request that is not waited for, and the cache. */
static void requests(const mw_compiler *compiler) {
    static const char pattern[] = "[a-z]{3} or else";
    mw_request *request;
    mw_compiled_constraint *first, *second;
    mw_statistics before = MW_STATISTICS_INIT, after = MW_STATISTICS_INIT;
    mw_status status;
    size_t length, again;
    char *page;
    EXPECT(MW_OK, mw_compiler_statistics(compiler, &before, SAY));
    EXPECT(MW_OK, mw_request_new(compiler, MW_REGEX, pattern, sizeof pattern - 1, &request, SAY));
    status = mw_request_wait(request, 0, &first, SAY);
    CHECK(status == MW_OK || status == MW_PENDING);
    if (status == MW_OK) mw_compiled_constraint_free(first);
    EXPECT(MW_OK, mw_request_wait(request, 60000, &first, SAY));
    EXPECT(MW_OK, mw_request_wait(request, 0, &second, SAY));
    mw_request_free(request);
    mw_compiled_constraint_free(first);
    mw_compiled_constraint_free(second);
    EXPECT(MW_OK, mw_compile(compiler, MW_REGEX, pattern, sizeof pattern - 1, &first, SAY));
    mw_compiled_constraint_free(first);
    EXPECT(MW_OK, mw_compiler_statistics(compiler, &after, SAY));
    CHECK(after.requests_missed == before.requests_missed + 1 && after.requests_hit == before.requests_hit + 1);
    CHECK(after.compiled == before.compiled + 1 && after.cache_entries == before.cache_entries + 1);
    CHECK(after.masks >= 2 && after.matchers >= 9 && after.tokens >= 5 && after.panicked == 0);

    EXPECT(MW_TOO_SHORT, mw_compiler_prometheus(compiler, NULL, 0, &length, SAY));
    /* The compiler's threads go on counting, so the text may be longer the second time. */
    page = (char *)malloc(length + 1000);
    CHECK(page != NULL);
    EXPECT(MW_OK, mw_compiler_prometheus(compiler, page, length + 1000, &again, SAY));
    CHECK(again > length / 2 && strlen(page) == again && strstr(page, "maskwright_") != NULL);
    free(page);
}

/* Guessed tokens: the rows are the masks that the matcher has behind them. */
static void drafts(const mw_compiler *compiler) {
    mw_matcher *matcher = start(compiler, MW_REGEX, "a(b|c)d");
    uint32_t rows[5][SMALL_MASK + 1], expected[SMALL_MASK];
    uint32_t tokens[4], parents[4];
    uint8_t allowed[4];
    size_t i;
    tokens[0] = 'a';
    tokens[1] = 'b';
    tokens[2] = 'c';
    tokens[3] = 'x';
    memset(rows, 0x55, sizeof rows);
    EXPECT(MW_OK, mw_matcher_fill_draft_chain(matcher, tokens, 3, &rows[0][0], SMALL_MASK + 1, allowed, SAY));
    CHECK(allowed[0] == 1 && allowed[1] == 1 && allowed[2] == 0);
    for (i = 0; i < 3; i++) {
        EXPECT(MW_OK, mw_matcher_fill_mask(matcher, expected, SMALL_MASK, SAY));
        CHECK(memcmp(rows[i], expected, sizeof expected) == 0);
        if (i < 2) EXPECT(MW_OK, mw_matcher_accept(matcher, tokens[i], SAY));
    }
    memset(expected, 0, sizeof expected);
    CHECK(memcmp(rows[3], expected, sizeof expected) == 0);
    EXPECT(MW_OK, mw_matcher_rollback(matcher, 2, SAY));
    /* A tree: b and c both behind a, and x where the matcher stands. */
    parents[0] = MW_ROOT;
    parents[1] = 0;
    parents[2] = 0;
    parents[3] = MW_ROOT;
    EXPECT(MW_OK, mw_matcher_fill_draft_tree(matcher, tokens, parents, 4, &rows[0][0], SMALL_MASK + 1, allowed, SAY));
    CHECK(allowed[0] == 1 && allowed[1] == 1 && allowed[2] == 1 && allowed[3] == 0);
    CHECK(memcmp(rows[2], rows[3], sizeof expected) == 0 && rows[2]['d' / 32] == 1u << 'd' % 32);
    EXPECT(MW_OK, mw_matcher_fill_draft_chain(matcher, NULL, 0, &rows[0][0], SMALL_MASK + 1, NULL, SAY));
    /* A parent must come before its children. */
    parents[1] = 1;
    EXPECT(MW_ARGUMENT, mw_matcher_fill_draft_tree(matcher, tokens, parents, 4, &rows[0][0], SMALL_MASK + 1, allowed, SAY));
    EXPECT(MW_TOO_SHORT, mw_matcher_fill_draft_chain(matcher, tokens, 3, &rows[0][0], SMALL_MASK - 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_fill_draft_chain(matcher, NULL, 3, &rows[0][0], SMALL_MASK + 1, NULL, SAY));
    EXPECT(MW_ARGUMENT, mw_matcher_fill_draft_chain(NULL, tokens, 3, &rows[0][0], SMALL_MASK + 1, NULL, SAY));
    mw_matcher_free(matcher);
}

/* What one compiler has learnt, in another. */
static void restart(const mw_vocabulary *vocabulary, const mw_compiler *compiler) {
    mw_compiler *other;
    mw_compiled_constraint *constraint;
    mw_statistics statistics = MW_STATISTICS_INIT;
    uint8_t *file;
    size_t length, written, ready;
    EXPECT(MW_OK, mw_compile(compiler, MW_REGEX, "seen before", 11, &constraint, SAY));
    mw_compiled_constraint_free(constraint);
    EXPECT(MW_TOO_SHORT, mw_compiler_save(compiler, NULL, 0, &length, SAY));
    file = (uint8_t *)malloc(length + 100000);
    CHECK(file != NULL);
    EXPECT(MW_OK, mw_compiler_save(compiler, file, length + 100000, &written, SAY));
    EXPECT(MW_OK, mw_compiler_new(vocabulary, NULL, &other, SAY));
    EXPECT(MW_FILE, mw_compiler_load(other, file, written / 2, &ready, SAY));
    CHECK(ready == 0);
    EXPECT(MW_FILE, mw_compiler_load(other, (const uint8_t *)"foreign", 7, &ready, SAY));
    EXPECT(MW_OK, mw_compiler_load(other, file, written, &ready, SAY));
    CHECK(ready > 0);
    EXPECT(MW_OK, mw_compile(other, MW_REGEX, "seen before", 11, &constraint, SAY));
    EXPECT(MW_OK, mw_compiler_statistics(other, &statistics, SAY));
    CHECK(statistics.requests_hit == 1);
    EXPECT(MW_ARGUMENT, mw_compiler_save(NULL, NULL, 0, &length, SAY));
    EXPECT(MW_ARGUMENT, mw_compiler_load(NULL, file, written, &ready, SAY));
    mw_compiled_constraint_free(constraint);
    mw_compiler_free(other);
    free(file);
}

static void choices(const mw_compiler *compiler) {
    static const char *const list[] = {"yes", "no", "the \"answer\""};
    mw_compiled_constraint *constraint;
    mw_matcher *matcher;
    EXPECT(MW_OK, mw_compile_choice(compiler, list, COUNT(list), &constraint, SAY));
    EXPECT(MW_OK, mw_matcher_new(constraint, &matcher, SAY));
    EXPECT(MW_OK, mw_matcher_accept_bytes(matcher, (const uint8_t *)list[2], strlen(list[2]), SAY));
    CHECK(state_of(matcher) == MW_STOPPED);
    mw_compiled_constraint_free(constraint);
    mw_matcher_free(matcher);
}

/* What the frontends say about constraints that they accept. */
static void remarks(const mw_compiler *compiler) {
    static const char schema[] = "{\"type\": \"integer\", \"title\": \"Age\"}";
    static const char typo[] = "{\"type\": \"string\", \"format\": \"guid\"}";
    static const char grammar[] = "root ::= \"yes\"\nunused ::= \"no\"";
    mw_compiled_constraint *constraint;
    char text[500];
    size_t length, again;
    EXPECT(MW_OK, mw_compile(compiler, MW_JSON_SCHEMA, schema, strlen(schema), &constraint, SAY));
    EXPECT(MW_TOO_SHORT, mw_compiled_constraint_remarks(constraint, NULL, 0, &length, SAY));
    EXPECT(MW_TOO_SHORT, mw_compiled_constraint_remarks(constraint, text, length, &again, SAY));
    EXPECT(MW_OK, mw_compiled_constraint_remarks(constraint, text, length + 1, &again, SAY));
    CHECK(again == length && strlen(text) == length);
    CHECK(strstr(text, "\"/title\"") != NULL && strstr(text, "\"annotation\"") != NULL && strstr(text, "\"/type\"") != NULL);
    CHECK(strstr(text, "\"enforced\"") != NULL && strstr(text, "\"warnings\":[]") != NULL);
    mw_compiled_constraint_free(constraint);
    EXPECT(MW_OK, mw_compile(compiler, MW_JSON_SCHEMA, typo, strlen(typo), &constraint, SAY));
    EXPECT(MW_OK, mw_compiled_constraint_remarks(constraint, text, sizeof text, &length, SAY));
    CHECK(strstr(text, "did you mean uuid?\",\"pointer\":\"/format\"") != NULL);
    mw_compiled_constraint_free(constraint);
    EXPECT(MW_OK, mw_compile(compiler, MW_EBNF, grammar, strlen(grammar), &constraint, SAY));
    EXPECT(MW_OK, mw_compiled_constraint_remarks(constraint, text, sizeof text, &length, SAY));
    CHECK(strstr(text, "\"report\":[]") != NULL && strstr(text, "unused") != NULL && strstr(text, "\"start\":15") != NULL);
    mw_compiled_constraint_free(constraint);
}

/* Options of the languages change what a schema means. */
static void languages(const mw_vocabulary *vocabulary) {
    static const char schema[] = "{\"type\": \"array\", \"items\": {\"const\": 1}}";
    mw_compiler_options options = MW_COMPILER_OPTIONS_INIT;
    mw_compiler *compiler;
    mw_matcher *matcher;
    options.workers = 1;
    options.timeout_ms = 60000;
    options.languages = "{\"json_schema\": {\"whitespace\": \"compact\"}}";
    EXPECT(MW_OK, mw_compiler_new(vocabulary, &options, &compiler, SAY));
    matcher = start(compiler, MW_JSON_SCHEMA, schema);
    /* What is compiled outlives its compiler. */
    mw_compiler_free(compiler);
    EXPECT(MW_NOT_ALLOWED, mw_matcher_accept_bytes(matcher, (const uint8_t *)"[ 1]", 4, SAY));
    EXPECT(MW_OK, mw_matcher_accept_bytes(matcher, (const uint8_t *)"[1,1]", 5, SAY));
    CHECK(state_of(matcher) == MW_STOPPED);
    mw_matcher_free(matcher);
}

/* The tools of a request, a text that is written under them, and what is read of it. */
static void tools(const mw_compiler *compiler, const mw_vocabulary *vocabulary) {
    const char *request = "{\"tools\": [{\"name\": \"now\"}], \"choice\": \"required\"}";
    const char *written = "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>";
    char tag[4096], events[1024], why[4096];
    uint32_t tokens[128];
    size_t length, i;
    int32_t finish;
    mw_reader *reader;
    mw_matcher *matcher;

    EXPECT(MW_TOO_SHORT, mw_tool_format_tag("hermes", request, tag, 3, &length, SAY));
    EXPECT(MW_OK, mw_tool_format_tag("hermes", request, tag, sizeof tag, &length, SAY));
    CHECK(strlen(tag) == length);
    matcher = start(compiler, MW_STRUCTURAL_TAG, tag);
    EXPECT(MW_OK, mw_matcher_accept_bytes(matcher, (const uint8_t *)written, 5, SAY));
    EXPECT(MW_OK, mw_matcher_explain(matcher, (uint32_t)'x', why, sizeof why, &length, SAY));
    CHECK(strstr(why, "\"allowed\":false") != NULL && strstr(why, "\"reason\":\"none of its bytes fits") != NULL);
    EXPECT(MW_OK, mw_matcher_accept_bytes(matcher, (const uint8_t *)written + 5, strlen(written) - 5, SAY));
    CHECK(state_of(matcher) >= MW_ACCEPTING);
    mw_matcher_free(matcher);

    for (i = 0; i < 4; i++) tokens[i] = (uint32_t)"[1,["[i];
    EXPECT(MW_OK, mw_locate(compiler, MW_JSON_SCHEMA, "{\"type\": \"array\"}", 17, tokens, 4, why, sizeof why, &length, SAY));
    CHECK(strstr(why, "\"path\":\"/1\"") != NULL && strstr(why, "\"complete\":false") != NULL);
    EXPECT(MW_NOT_ALLOWED, mw_locate(compiler, MW_REGEX, "a+", 2, tokens, 1, why, sizeof why, &length, SAY));

    EXPECT(MW_OK, mw_reader_new(tag, NULL, &reader, SAY));
    EXPECT(MW_OK, mw_reader_feed(reader, (const uint8_t *)written, 20, SAY));
    EXPECT(MW_OK, mw_reader_feed(reader, (const uint8_t *)written + 20, strlen(written) - 20, SAY));
    EXPECT(MW_TOO_SHORT, mw_reader_events(reader, events, 3, &length, SAY));
    EXPECT(MW_OK, mw_reader_events(reader, events, sizeof events, &length, SAY));
    CHECK(strstr(events, "\"call_done\"") != NULL && strstr(events, "\"name\":\"now\"") != NULL);
    EXPECT(MW_OK, mw_reader_finish(reader, &finish, SAY));
    CHECK(finish == 0);
    EXPECT(MW_OK, mw_reader_events(reader, events, sizeof events, &length, SAY));
    CHECK(strcmp(events, "[]") == 0);
    tokens[0] = 1;
    EXPECT(MW_ARGUMENT, mw_reader_feed_tokens(reader, tokens, 1, SAY));
    mw_reader_free(reader);

    for (i = 0; i < strlen(written); i++) tokens[i] = (uint32_t)(unsigned char)written[i];
    EXPECT(MW_OK, mw_reader_new(tag, vocabulary, &reader, SAY));
    EXPECT(MW_OK, mw_reader_feed_tokens(reader, tokens, strlen(written), SAY));
    tokens[0] = 0xFFFFFFFFu;
    EXPECT(MW_NO_TOKEN, mw_reader_feed_tokens(reader, tokens, 1, SAY));
    EXPECT(MW_OK, mw_reader_events(reader, events, sizeof events, &length, SAY));
    CHECK(strstr(events, "\"call_done\"") != NULL);
    mw_reader_free(reader);
    mw_reader_free(NULL);

    EXPECT(MW_CONSTRAINT, mw_tool_format_tag("abacus", request, tag, sizeof tag, &length, SAY));
    EXPECT(MW_CONSTRAINT, mw_tool_format_tag("hermes", "{\"tools\": 3}", tag, sizeof tag, &length, SAY));
    EXPECT(MW_CONSTRAINT, mw_tool_format_tag("hermes", "{", tag, sizeof tag, &length, SAY));
    EXPECT(MW_ARGUMENT, mw_tool_format_tag(NULL, request, tag, sizeof tag, &length, SAY));
    EXPECT(MW_CONSTRAINT, mw_reader_new("{}", NULL, &reader, SAY));
    CHECK(reader == NULL);
    EXPECT(MW_ARGUMENT, mw_reader_feed(NULL, NULL, 0, SAY));
}

/* How likely tokens are, beside a matcher. */
static void weights(const mw_compiler *compiler) {
    static const char grammar[] = "S -> yes [0.75] | no [0.25]";
    const uint32_t tokens[] = {word("yes"), word("no"), word("the "), 'n'};
    mw_compiled_constraint *constraint, *plain;
    mw_scorer *scorer, *copy;
    double scores[4], prefix, whole;
    EXPECT(MW_OK, mw_compile(compiler, MW_REGEX, "yes", 3, &plain, SAY));
    EXPECT(MW_ARGUMENT, mw_scorer_new(plain, &scorer, SAY));
    CHECK(scorer == NULL && strstr(message, "no probabilities"));
    mw_compiled_constraint_free(plain);
    EXPECT(MW_OK, mw_compile(compiler, MW_PCFG, grammar, strlen(grammar), &constraint, SAY));
    EXPECT(MW_OK, mw_scorer_new(constraint, &scorer, SAY));
    mw_compiled_constraint_free(constraint);
    EXPECT(MW_OK, mw_scorer_scores(scorer, tokens, 4, scores, SAY));
    CHECK(near(scores[0], log(0.75)) && near(scores[1], log(0.25)) && scores[2] == -INFINITY && near(scores[3], log(0.25)));
    EXPECT(MW_NOT_ALLOWED, mw_scorer_accept(scorer, word("the "), SAY));
    EXPECT(MW_NO_TOKEN, mw_scorer_accept(scorer, SMALL_COUNT, SAY));
    EXPECT(MW_OK, mw_scorer_accept(scorer, 'n', SAY));
    EXPECT(MW_OK, mw_scorer_fork(scorer, &copy, SAY));
    EXPECT(MW_OK, mw_scorer_logprob(scorer, &prefix, &whole, SAY));
    CHECK(near(prefix, log(0.25)) && whole == -INFINITY);
    EXPECT(MW_OK, mw_scorer_accept(copy, 'o', SAY));
    EXPECT(MW_OK, mw_scorer_logprob(copy, &prefix, &whole, SAY));
    CHECK(near(whole, log(0.25)));
    EXPECT(MW_ARGUMENT, mw_scorer_rollback(scorer, 2, SAY));
    EXPECT(MW_OK, mw_scorer_rollback(scorer, 1, SAY));
    EXPECT(MW_OK, mw_scorer_logprob(scorer, &prefix, &whole, SAY));
    CHECK(near(prefix, 0));
    mw_scorer_free(copy);
    mw_scorer_free(scorer);
    mw_scorer_free(NULL);
}

/* What must come next in one answer, how far it is to the end, and a schema as a regular expression. */
static void ahead(const mw_compiler *compiler) {
    static const char schema[] = "{\"enum\": [1, 23]}", array[] = "{\"type\": \"array\", \"items\": true}";
    static const uint8_t half[] = {0xC3};
    mw_matcher *matcher = start(compiler, MW_REGEX, "(\xC3\xA9|\xC3\xA8) is yes"), *one = start(compiler, MW_REGEX, "\xC3\xA9 is yes");
    char text[512];
    size_t length;
    uint32_t least;
    EXPECT(MW_OK, mw_matcher_forced(matcher, NULL, 0, text, sizeof text, &length, SAY));
    /* One byte of a character is certain, which is no text. */
    CHECK(strcmp(text, "{\"completes\":[],\"text\":\"\",\"tokens\":[]}") == 0 && length == strlen(text));
    EXPECT(MW_OK, mw_matcher_accept_bytes(one, half, 1, SAY));
    EXPECT(MW_OK, mw_matcher_forced(one, NULL, 0, text, sizeof text, &length, SAY));
    CHECK(strstr(text, "\"completes\":[169],\"text\":\" is yes\""));
    EXPECT(MW_TOO_SHORT, mw_matcher_forced(one, NULL, 0, text, 4, &length, SAY));
    EXPECT(MW_OK, mw_matcher_reset(one, SAY));
    EXPECT(MW_OK, mw_matcher_shortest_completion(one, &least, SAY));
    CHECK(least == 4); /* the character, " is ", "yes", and the end */
    mw_matcher_free(one);
    mw_matcher_free(matcher);
    EXPECT(MW_OK, mw_schema_to_regex(schema, strlen(schema), NULL, 0, text, sizeof text, &length, SAY));
    matcher = start(compiler, MW_REGEX, text);
    EXPECT(MW_OK, mw_matcher_accept_bytes(matcher, (const uint8_t *)"23", 2, SAY));
    CHECK(state_of(matcher) >= MW_ACCEPTING);
    mw_matcher_free(matcher);
    EXPECT(MW_CONSTRAINT, mw_schema_to_regex(array, strlen(array), NULL, 0, text, sizeof text, &length, SAY));
    EXPECT(MW_CONSTRAINT, mw_schema_to_regex(schema, strlen(schema), NULL, 1, text, sizeof text, &length, SAY));
    EXPECT(MW_ARGUMENT, mw_schema_to_regex(schema, strlen(schema), "{\"json_schema\": {\"colour\": 1}}", 0, text, sizeof text, &length, SAY));
}

int main(void) {
    mw_vocabulary *small = small_vocabulary();
    mw_compiler *compiler;
    CHECK(strcmp(mw_version(), MW_HEADER_VERSION) == 0 && strcmp(mw_status_name(MW_NOT_ALLOWED), "MW_NOT_ALLOWED") == 0);
    EXPECT(MW_OK, mw_compiler_new(small, NULL, &compiler, SAY));
    vocabulary(small);
    languages(small);
    tools(compiler, small);
    weights(compiler);
    ahead(compiler);
    restart(small, compiler);
    /* So does a compiler its vocabulary. */
    mw_vocabulary_free(small);
    kinds(compiler);
    text(compiler);
    budgets(compiler);
    batches(compiler);
    logits(compiler);
    drafts(compiler);
    choices(compiler);
    remarks(compiler);
    requests(compiler);
    mw_compiler_free(compiler);
    printf("all is well\n");
    return 0;
}
