/* Families of models that motet does not run (elsewhere.def). */
#ifndef MT_WEIGHTS_ELSEWHERE_H
#define MT_WEIGHTS_ELSEWHERE_H

#include "base/error.h"

/* The advice where nothing better is known. */
#define MT_ELSEWHERE_ADVICE "motet list --known has some models that it does, docs/models.md all families"

/* Sets the error for a model of a family that motet does not run: whose it is and what to take instead, where the table
   has it. what: "model type" or "architecture". advice: what to do where it does not. Always returns false. */
bool mt_fail_elsewhere(const char *what, const char *type, const char *advice, mt_error *err);

#endif
