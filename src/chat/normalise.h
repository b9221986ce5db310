/* Messages as clients send them, made into messages as templates expect them. docs/messages.md has the rules. */
#ifndef MT_CHAT_NORMALISE_H
#define MT_CHAT_NORMALISE_H

#include "chat/profile.h"

/* Changes chat in place: later system messages are moved where the template cannot show them in place, neighbours of
   the same role become one, tool results stand in the order of their calls. */
bool mt_chat_normalise(mt_chat *chat, const mt_chat_profile *profile, mt_error *err) MT_NODISCARD;

#endif
