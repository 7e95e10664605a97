/* What the program and the samplers share. */
#ifndef LLAMA_MAIN_H
#define LLAMA_MAIN_H

#include "libllama.h"

/* A sampler that lets through what satisfies a schema. */
llama_sampler *new_sampler(const char *model_path, const llama_vocab *vocab, const char *schema);

/* How long an answer may be. */
enum { ANSWER_TOKENS = 200 };

/* Says what went wrong, and ends the program. */
void stop(const char *what, const char *message);

#endif
