/* How a prompt ends: with what opens the assistant's turn (the generation prompt), behind the last message, or within
   it, so that the answer goes on with what that says.

   For the last, the message is given to the template with a tag behind its text, and the rendered text is cut at the
   tag: whatever a template writes around a message, nothing of it follows. That is transformers' way, too, and gives
   the same prompts. */
#ifndef MT_CHAT_ENDING_H
#define MT_CHAT_ENDING_H

#include "chat/chat.h"
#include "template/template.h"

/* Reads add_generation_prompt and continue_final_message. Part of mt_chat_read, behind the messages. */
bool mt_chat_ending_read(mt_chat *chat, const json_t *request, mt_error *err) MT_NODISCARD;

/* Puts the tag behind what the last message, which is normalised, says. */
bool mt_chat_ending_mark(mt_chat *chat, mt_error *err) MT_NODISCARD;

/* Cuts the text, and what is known of its bytes, where the tag is. Marks stay as they are: some may lie behind. */
bool mt_chat_ending_cut(mt_rendering *rendering, mt_error *err) MT_NODISCARD;

#endif
