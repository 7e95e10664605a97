/* Tokenizers from files: arguments are a tokenizer.json and a folder with a GGUF file. */
#include "check.h"
#include "maskwright.h"

static void file(const char *path, const char *schema, const char *document) {
    mw_vocabulary *vocabulary;
    mw_compiler *compiler;
    mw_compiled_constraint *constraint;
    mw_matcher *matcher;
    uint32_t tokens[64], eos[8], state, *words;
    uint8_t bytes[200];
    size_t count, length, i, ends, forced, size;
    EXPECT(MW_OK, mw_vocabulary_load(path, NULL, &vocabulary, SAY));
    EXPECT(MW_OK, mw_vocabulary_eos(vocabulary, eos, COUNT(eos), &ends, SAY));
    CHECK(ends > 0);
    EXPECT(MW_OK, mw_vocabulary_encode(vocabulary, document, strlen(document), tokens, COUNT(tokens), &count, SAY));
    EXPECT(MW_OK, mw_vocabulary_decode(vocabulary, tokens, count, bytes, sizeof bytes, &length, SAY));
    CHECK(length == strlen(document) && memcmp(bytes, document, length) == 0);

    EXPECT(MW_OK, mw_compiler_new(vocabulary, NULL, &compiler, SAY));
    EXPECT(MW_OK, mw_compile(compiler, MW_JSON_SCHEMA, schema, strlen(schema), &constraint, SAY));
    EXPECT(MW_OK, mw_matcher_new(constraint, &matcher, SAY));
    size = mw_vocabulary_mask_words(vocabulary);
    words = (uint32_t *)malloc(size * sizeof *words);
    CHECK(words != NULL);
    for (i = 0; i < count; i++) {
        EXPECT(MW_OK, mw_matcher_fill_mask(matcher, words, size, SAY));
        CHECK(words[tokens[i] / 32] >> (tokens[i] % 32) & 1);
        CHECK(!(words[eos[0] / 32] >> (eos[0] % 32) & 1));
        EXPECT(MW_OK, mw_matcher_accept(matcher, tokens[i], SAY));
    }
    EXPECT(MW_OK, mw_matcher_state(matcher, &state, SAY));
    CHECK(state == MW_STOPPED);
    /* With a tokenizer, what is forced is known in tokens, and these are the tokens of the text. */
    EXPECT(MW_OK, mw_matcher_rollback(matcher, count - 1, SAY));
    EXPECT(MW_OK, mw_matcher_forced_tokens(matcher, tokens, 1, eos, COUNT(eos), &forced, SAY));
    CHECK(forced > 0 && memcmp(tokens + 1, eos, forced * sizeof *eos) == 0);
    free(words);
    mw_matcher_free(matcher);
    mw_compiled_constraint_free(constraint);
    mw_compiler_free(compiler);
    mw_vocabulary_free(vocabulary);
}

/* A model whose logits are wider than its tokenizer, and which ends with another token. */
static void options(const char *path) {
    mw_vocabulary_options options = MW_VOCABULARY_OPTIONS_INIT;
    mw_vocabulary *vocabulary;
    uint32_t eos[] = {128001}, found[4], kind;
    size_t count;
    options.eos = eos;
    options.eos_count = 1;
    options.size = 128512;
    EXPECT(MW_OK, mw_vocabulary_load(path, &options, &vocabulary, SAY));
    CHECK(mw_vocabulary_size(vocabulary) == 128512 && mw_vocabulary_mask_words(vocabulary) == 4016);
    EXPECT(MW_OK, mw_vocabulary_eos(vocabulary, found, 4, &count, SAY));
    CHECK(count == 1 && found[0] == 128001);
    EXPECT(MW_OK, mw_vocabulary_token(vocabulary, 128511, &kind, NULL, 0, &count, SAY));
    CHECK(kind == MW_TOKEN_UNUSED);
    mw_vocabulary_free(vocabulary);
}

int main(int count, char **arguments) {
    static const char schema[] =
        "{\"type\": \"object\", \"properties\": {\"temperature\": {\"type\": \"integer\"}}, \"required\": [\"temperature\"], \"additionalProperties\": false}";
    static const char document[] = "{\"temperature\": 21}";
    CHECK(count == 3);
    file(arguments[1], schema, document);
    file(arguments[2], schema, document);
    options(arguments[1]);
    printf("all is well\n");
    return 0;
}
