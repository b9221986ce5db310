/* Reads which tools a chat may call ("tool_choice"), the older fields "functions" and "function_call", and custom
   tools. */
#ifndef MT_API_OPENAI_TOOLS_H
#define MT_API_OPENAI_TOOLS_H

#include "api/answer.h"
#include "api/fields.h"

/* tool_choice: a word, a tool, or {"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}. */
mt_field_read mt_read_tool_choice;

/* Sets ask->calls from "auto", "none" or "required"; false: it is another word. */
bool mt_tool_choice_word(mt_ask *ask, const char *word);

/* mt_tool_choice_add allows a tool, beside those allowed before; mt_tool_choice_only requires one. False: the name's
   data is NULL, or memory is missing. */
bool mt_tool_choice_add(mt_ask *ask, mt_chat_text name);
bool mt_tool_choice_only(mt_ask *ask, mt_chat_text name);

/* After the allowed tools were added: sets whether one must be called. ok: the names were valid. False: *why. */
bool mt_tool_choice_mode(mt_ask *ask, const char *field, const char *mode, bool ok, mt_failure *why) MT_NODISCARD;

/* Where the body has "functions" instead of "tools", *tools becomes a list of tools, which the ask owns; else NULL.
   False: *why. */
bool mt_functions_read(mt_ask *ask, const json_t **tools, mt_failure *why) MT_NODISCARD;

/* Custom tools, whose input is text. mt_custom_add adds one, {"name", "description", "format"}, to a list of tools, as
   a function with the one argument "input", and notes its name in ask->extra["tools"]. mt_custom_read does so for those
   of a chat's body: ask->body becomes a copy without them. False: *why. */
bool mt_custom_add(mt_ask *ask, const json_t *tool, json_t *list, mt_failure *why) MT_NODISCARD;
bool mt_custom_read(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* The input of a call of a custom tool, a new reference; NULL where the part is no such call. */
json_t *mt_custom_input(const mt_answer *answer, const mt_speech_part *part);

#endif
