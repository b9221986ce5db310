/* Which formats a chat template speaks of: it writes the calls and the reasoning of earlier turns the way the model
   does. The first line whose words are all in the template decides. */
#include <string.h>

#include "base/compiler.h"
#include "chat/parse.h"

typedef struct sign {
    const char *format;
    const char *words[2];
} sign;

static const sign tools[] = {
    {"deepseek_v32", {"｜DSML｜"}},
    {"deepseek_v3", {"tool▁calls▁begin", "```json"}},
    {"deepseek_v31", {"tool▁calls▁begin"}},
    {"kimi_k2", {"<|tool_calls_section_begin|>"}},
    {"gemma4", {"<|tool_call>", "call:"}},
    {"glm4", {"<arg_key>"}},
    {"seed_oss", {"<seed:tool_call>"}},
    {"minimax_m2", {"<minimax:tool_call>"}},
    {"none", {"]<]minimax[>["}},
    {"harmony", {"<|channel|>", "<|message|>"}},
    {"mistral", {"[TOOL_CALLS]"}},
    {"nemotron", {"<TOOLCALL>"}},
    {"cohere", {"<|START_ACTION|>"}},
    {"lfm2", {"<|tool_call_start|>"}},
    {"lfm2", {"<|tool_list_start|>"}},
    {"gigachat", {"<|function_call|>"}},
    {"internlm2", {"<|action_start|>"}},
    {"functionary_v2", {"<|recipient|>"}},
    {"functionary", {">>>", "<|start_header_id|>"}},
    {"qwen3_xml", {"<function=", "<parameter="}},
    {"functionary_v31", {"<function=", "<|start_header_id|>"}},
    {"minicpm5", {"<function name="}},
    {"granite", {"<|tool_call|>"}},
    {"tool_calls", {"<tool_calls>"}},
    {"hermes", {"<tool_call>"}},
    {"granite_20b", {"<function_call>"}},
    {"phi4_mini", {"functools["}},
    {"llama4", {"<|header_start|>", "tools"}},
    {"gemma3", {"tool_code"}},
    {"pythonic", {"func_name1("}},
    {"xlam", {"tool_calls", "\"arguments\": {\"arg"}},
    {"llama3", {"<|python_tag|>"}},
    {"llama3", {"<|start_header_id|>", "\"parameters\": "}},
};

static const sign reasoning[] = {
    {"harmony", {"<|channel|>", "<|message|>"}},
    {"gemma4", {"<|channel>"}},
    {"mistral", {"[THINK]"}},
    {"seed_oss", {"<seed:think>"}},
    {"cohere", {"<|START_THINKING|>"}},
    {"hunyuan", {"<think:opensource>"}},
    {"apertus", {"<|inner_prefix|>"}},
    {"apriel", {"[BEGIN FINAL RESPONSE]"}},
    {"none", {"]<]minimax[>["}},
    {"glm4v", {"<think>", "<|begin_of_box|>"}},
    {"granite", {"<think>", "<response>"}},
    {"think", {"</think>"}},
    {"think", {"<think>"}},
    {"thought", {"</thought>"}},
    {"thinking", {"</thinking>"}},
    {"reasoning", {"</reasoning>"}},
};

static bool has(const char *source, size_t len, const char *word)
{
    return !word || memmem(source, len, word, strlen(word)) != NULL;
}

static const char *decide(const sign *signs, size_t count, const char *source, size_t len)
{
    for (size_t i = 0; i < count; i++)
        if (has(source, len, signs[i].words[0]) && has(source, len, signs[i].words[1]))
            return signs[i].format;
    return "none";
}

mt_parse_formats mt_parse_detect(const char *source, size_t len)
{
    return (mt_parse_formats){
        .tools = decide(tools, MT_COUNT(tools), source, len),
        .reasoning = decide(reasoning, MT_COUNT(reasoning), source, len),
    };
}
