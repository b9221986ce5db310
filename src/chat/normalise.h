/* Makes messages as clients send them into messages as the model's template expects them. docs/messages.md has the
   rules. */
#ifndef MT_CHAT_NORMALISE_H
#define MT_CHAT_NORMALISE_H

#include "chat/profile.h"

/* Changes the chat in place: system messages that the template cannot show where they stand are moved to the front,
   neighbours of the same role are merged, and tool results are sorted as their calls. False: *err. */
bool mt_chat_normalise(mt_chat *chat, const mt_chat_profile *profile, mt_error *err) MT_NODISCARD;

#endif
