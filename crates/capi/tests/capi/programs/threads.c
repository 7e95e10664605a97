/* Eight threads on one compiler: equal and different constraints, matchers that travel, and everything freed in any order. */
#include <pthread.h>

#include "small.h"

enum { THREADS = 8, ROUNDS = 40 };

static mw_compiler *compiler;
static mw_matcher *travellers[THREADS];

static void *work(void *argument) {
    size_t self = *(const size_t *)argument, round;
    uint32_t words[SMALL_MASK];
    /* The buffer of the other programs is not for threads. */
    char said[100] = "";
    for (round = 0; round < ROUNDS; round++) {
        mw_compiled_constraint *constraint;
        mw_matcher *matcher;
        char pattern[32];
        uint32_t state, i;
        snprintf(pattern, sizeof pattern, "[a-%c]{%d}", 'b' + (int)(round % 4), 3);
        CHECK(mw_compile(compiler, MW_REGEX, pattern, strlen(pattern), &constraint, said, sizeof said) == MW_OK);
        CHECK(mw_matcher_new(constraint, &matcher, said, sizeof said) == MW_OK);
        mw_compiled_constraint_free(constraint);
        for (i = 0; i < 3; i++) {
            CHECK(mw_matcher_fill_mask(matcher, words, SMALL_MASK, said, sizeof said) == MW_OK);
            CHECK(allows(words, 'a') && allows(words, (uint32_t)('b' + round % 4)) && !allows(words, (uint32_t)('c' + round % 4)));
            CHECK(mw_matcher_accept(matcher, 'b', said, sizeof said) == MW_OK);
        }
        CHECK(mw_matcher_state(matcher, &state, said, sizeof said) == MW_OK && state == MW_STOPPED);
        if (round + 1 < ROUNDS)
            mw_matcher_free(matcher);
        else
            travellers[self] = matcher;
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    size_t numbers[THREADS], i;
    mw_statistics statistics = MW_STATISTICS_INIT;
    mw_vocabulary *vocabulary = small_vocabulary();
    EXPECT(MW_OK, mw_compiler_new(vocabulary, NULL, &compiler, SAY));
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    for (i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
    EXPECT(MW_OK, mw_compiler_statistics(compiler, &statistics, SAY));
    CHECK(statistics.compiled == 4 && statistics.requests_missed == 4);
    CHECK(statistics.requests_hit + statistics.requests_joined + 4 == THREADS * ROUNDS);
    mw_compiler_free(compiler);
    mw_vocabulary_free(vocabulary);
    for (i = 0; i < THREADS; i++) {
        EXPECT(MW_OK, mw_matcher_rollback(travellers[i], 1, SAY));
        CHECK(state_of(travellers[i]) == MW_OPEN);
        mw_matcher_free(travellers[i]);
    }
    printf("all is well\n");
    return 0;
}
