/* Which tools a chat may call, and the form in which they were declared before there were tools. */
#ifndef MT_API_OPENAI_TOOLS_H
#define MT_API_OPENAI_TOOLS_H

#include "api/fields.h"

/* tool_choice: a word, a tool, or {"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}. */
mt_field_read mt_read_tool_choice;

/* Fields of chats that other dialects have elsewhere. In openai_chat.c. */
mt_field_read mt_read_top_logprobs, mt_read_effort;

/* "auto", "none" or "required"; false: it is none of them. */
bool mt_tool_choice_word(mt_ask *ask, const char *word);

/* A tool that may be called, beside those that were named before; and one that must be. */
bool mt_tool_choice_add(mt_ask *ask, mt_chat_text name);
bool mt_tool_choice_only(mt_ask *ask, mt_chat_text name);

/* Behind the names: how many of the tools are to be called. ok: the names were right. */
bool mt_tool_choice_mode(mt_ask *ask, const char *field, const char *mode, bool ok, mt_failure *why) MT_NODISCARD;

/* Where the body has functions instead of tools: *tools becomes a list of these, which the ask owns; NULL otherwise. */
bool mt_functions_read(mt_ask *ask, const json_t **tools, mt_failure *why) MT_NODISCARD;

#endif
