/* Detects answers that repeat themselves (repeat.h). Called by sequence.c for every token. */
#include "engine/repeat.h"

#include "engine/limits.h"

bool mt_repeat_add(mt_repeat *r, uint32_t token, uint32_t limit)
{
    bool circles = false;
    for (size_t period = 1; period <= MT_LIMIT_REPEAT_PERIOD; period++) {
        uint32_t *same = &r->same[period - 1];
        const bool again = period <= r->count && r->last[(r->count - period) % MT_LIMIT_REPEAT_PERIOD] == token;
        *same = again ? *same + 1 : 0;
        circles = circles || (*same >= limit && *same >= 2 * period);
    }
    r->last[r->count++ % MT_LIMIT_REPEAT_PERIOD] = token;
    return circles;
}
