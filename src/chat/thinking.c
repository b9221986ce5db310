/* See thinking.h. */
#include "chat/thinking.h"

#include "chat/format.h"

bool mt_chat_thinking_find(const mt_parse_settings *settings, mt_chat_thinking *out)
{
    const mt_format *reasoning = mt_format_find_reasoning(settings->formats.reasoning);
    const mt_format *tools = mt_format_find_tools(settings->formats.tools);
    const mt_parse_table *table = reasoning ? reasoning->read : NULL;

    *out = (mt_chat_thinking){.answer = ""};
    if (table == &mt_parse_harmony) {
        out->open = "<|channel|>analysis<|message|>";
        out->close = "<|end|>";
        out->end = "<|end|><|start|>assistant";
        out->answer = "<|channel|>final<|message|>";
        out->anywhere = true;
        return true;
    }
    if (!mt_format_markers(reasoning, &out->open, &out->close))
        return false;
    out->end = out->close;
    out->anywhere = table->start == table->answer;
    if (json_array_size(settings->tools) && tools && tools->read)
        out->breaks = tools->read->breaks;
    return true;
}
