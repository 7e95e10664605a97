/* What all programs of these tests use. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char message[400];

/* Ends the program unless something holds. */
#define CHECK(condition)                                                                        \
    do {                                                                                        \
        if (!(condition)) {                                                                     \
            printf("%s:%d: %s; the last message was: %s\n", __FILE__, __LINE__, #condition, message); \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

/* A call that must end with a status. */
#define EXPECT(status, call)                                                                    \
    do {                                                                                        \
        mw_status ended = (call);                                                               \
        if (ended != (status)) {                                                                \
            printf("%s:%d: %s ended with %s: %s\n", __FILE__, __LINE__, #call, mw_status_name(ended), message); \
            exit(1);                                                                            \
        }                                                                                       \
    } while (0)

/* The last two arguments of most functions. */
#define SAY message, sizeof message

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#endif
