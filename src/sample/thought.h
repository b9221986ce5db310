/* Limits how long an answer thinks before it answers. The tokens of its thinking are counted as they are generated;
   when the budget is spent, the next tokens have to be those of the marker that ends thinking, and then the answer goes
   on freely. Where thinking begins and ends is found in the bytes of the tokens, as the parser (chat/parse.h) finds it
   in the text: models may spell a marker in other tokens than the tokenizer would.

   Depends on the answer's tokens alone, so thinking ends at the same token whether the answer was computed alone or
   with others, preempted or guessed ahead. The state is plain data: to try guesses, follow them on a copy. */
#ifndef MT_SAMPLE_THOUGHT_H
#define MT_SAMPLE_THOUGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an answer may think; constant, and shared by all answers of a request. */
typedef struct mt_thought_rule {
    size_t budget;            /* most tokens between the two markers, of all thoughts together */
    const char *open, *close; /* the markers' texts, shorter than 256 bytes */
    const char *breaks;       /* another text that ends thinking, such as the beginning of a tool call; NULL: none */
    bool opened;              /* the prompt ends within a thought */
    bool anywhere;            /* a thought may begin anywhere; else only where an answer begins */
    /* The tokens that end a thought whose budget is spent: the first end_once of them the first time. Where a model
       begins another thought after that, all of them, which leave no choice but to answer. */
    const uint32_t *end;
    size_t end_count, end_once; /* both at least 1 */
} mt_thought_rule;

/* Where an answer is. Begins as zeroes and `thinking` as mt_thought_rule.opened says. */
typedef struct mt_thought {
    bool thinking; /* within a thought */
    bool over;     /* no thought can begin any more */
    bool cut;      /* a thought was ended since the budget was spent */
    uint8_t at[2]; /* bytes of `open`, or of `close` and `breaks`, that the text ends with */
    size_t tokens; /* of thoughts, so far */
    size_t forced; /* tokens of mt_thought_rule.end that have come */
} mt_thought;

/* The token that has to come next; MT_SAMPLE_ANY: any may. */
uint32_t mt_thought_next(const mt_thought *thought, const mt_thought_rule *how);

/* Whether the token after the next one may have to be a certain one, depending on the next. */
bool mt_thought_ends_soon(const mt_thought *thought, const mt_thought_rule *how);

/* The answer goes on with a token, which has these bytes. */
void mt_thought_token(mt_thought *thought, const mt_thought_rule *how, uint32_t token, const char *bytes, size_t len);

#endif
