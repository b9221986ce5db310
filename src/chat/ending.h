/* How a prompt ends: with the beginning of the assistant's turn (the generation prompt), after the last message, or
   within the last message, so that the answer continues it.

   For the last case, a tag is appended to the message's text, and the rendered text is cut at the tag: so nothing that
   the template writes after a message follows. transformers does the same, and gives the same prompts. */
#ifndef MT_CHAT_ENDING_H
#define MT_CHAT_ENDING_H

#include "chat/chat.h"
#include "template/template.h"

/* Reads add_generation_prompt and continue_final_message, after the messages. Called by mt_chat_read_settings. False:
   *err. */
bool mt_chat_ending_read(mt_chat *chat, const json_t *request, mt_error *err) MT_NODISCARD;

/* Appends the tag to the last text of the last message; the chat is normalised. False: *err. */
bool mt_chat_ending_mark(mt_chat *chat, mt_error *err) MT_NODISCARD;

/* Cuts the rendered text, and the ranges of untrusted text, where the tag is. Marks of the rendering stay, even those
   behind the end. False: *err, the template does not show the tag. */
bool mt_chat_ending_cut(mt_rendering *rendering, mt_error *err) MT_NODISCARD;

#endif
