/* A small vocabulary: all characters of ASCII by themselves, some words, and two special tokens. */
#ifndef SMALL_H
#define SMALL_H

#include "check.h"
#include "maskwright.h"

static const char *const small_words[] = {"yes", "no", "the ", "answer", " is ", "{\"", "\":", "true", "false", "name", "\xC3\xA9"};

enum { SMALL_WORDS = 11, SMALL_END = 128 + SMALL_WORDS, SMALL_TOOL, SMALL_GAP, SMALL_COUNT };

/* The number of a word. */
static inline uint32_t word(const char *text) {
    uint32_t i;
    for (i = 0; i < SMALL_WORDS; i++)
        if (strcmp(small_words[i], text) == 0) return 128 + i;
    CHECK(strlen(text) == 1);
    return (uint32_t)(unsigned char)text[0];
}

/* The longest word that fits, again and again. */
static inline size_t small_encode(const void *data, const char *text, size_t length, uint32_t *tokens, size_t capacity) {
    size_t count = 0, at = 0;
    CHECK(data == (const void *)small_words);
    while (at < length) {
        uint32_t i, best = (uint32_t)(unsigned char)text[at];
        size_t best_length = 1;
        for (i = 0; i < SMALL_WORDS; i++) {
            size_t n = strlen(small_words[i]);
            if (n > best_length && n <= length - at && memcmp(small_words[i], text + at, n) == 0) {
                best = 128 + i;
                best_length = n;
            }
        }
        if (best >= 128 + SMALL_WORDS || (best_length == 1 && best >= 128)) return SIZE_MAX;
        if (count < capacity) tokens[count] = best;
        count++;
        at += best_length;
    }
    return count;
}

/* The tokens; valid until the next call. */
static inline mw_tokens small_tokens(void) {
    static uint8_t bytes[400];
    static uint32_t lengths[SMALL_COUNT];
    static uint8_t kinds[SMALL_COUNT];
    mw_tokens tokens = MW_TOKENS_INIT;
    size_t at = 0;
    uint32_t i;
    for (i = 0; i < SMALL_COUNT; i++) {
        char single[2] = {(char)i, 0};
        const char *text = i < 128 ? single : i < SMALL_END ? small_words[i - 128] : i == SMALL_END ? "<end>" : i == SMALL_TOOL ? "<tool>" : "";
        size_t length = i < 128 ? 1 : strlen(text);
        memcpy(bytes + at, text, length);
        at += length;
        lengths[i] = (uint32_t)length;
        kinds[i] = i < SMALL_END ? MW_TOKEN_ORDINARY : i == SMALL_GAP ? MW_TOKEN_UNUSED : MW_TOKEN_SPECIAL;
    }
    tokens.count = SMALL_COUNT;
    tokens.bytes = bytes;
    tokens.lengths = lengths;
    tokens.kinds = kinds;
    tokens.encode = small_encode;
    tokens.encode_data = (const void *)small_words;
    return tokens;
}

static inline mw_vocabulary *small_vocabulary(void) {
    static const uint32_t eos[] = {SMALL_END};
    mw_vocabulary_options options = MW_VOCABULARY_OPTIONS_INIT;
    mw_tokens tokens = small_tokens();
    mw_vocabulary *vocabulary;
    options.eos = eos;
    options.eos_count = COUNT(eos);
    EXPECT(MW_OK, mw_vocabulary_new(&tokens, &options, &vocabulary, SAY));
    return vocabulary;
}

enum { SMALL_MASK = (SMALL_COUNT + 31) / 32 };

static inline int allows(const uint32_t *words, uint32_t token) {
    return (int)(words[token / 32] >> (token % 32) & 1);
}

static inline uint32_t state_of(mw_matcher *matcher) {
    uint32_t state;
    EXPECT(MW_OK, mw_matcher_state(matcher, &state, SAY));
    return state;
}

#endif
