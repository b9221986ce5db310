/* Which tools a chat may call, and the form in which they were declared before there were tools. */
#ifndef MT_API_OPENAI_TOOLS_H
#define MT_API_OPENAI_TOOLS_H

#include "api/fields.h"

/* tool_choice: a word, a tool, or {"type": "allowed_tools", "allowed_tools": {"mode", "tools"}}. */
mt_field_read mt_read_tool_choice;

/* Where the body has functions instead of tools: gives the ask one that has tools, and is read as such. */
bool mt_functions_read(mt_ask *ask, mt_failure *why) MT_NODISCARD;

#endif
