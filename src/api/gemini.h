/* Shared by the files of Gemini's dialects. docs/gemini.md says what becomes of each field. */
#ifndef MT_API_GEMINI_H
#define MT_API_GEMINI_H

#include "api/answer.h"

/* The beginning of a "thoughtSignature", in base64; the reasoning before a call follows, as it is. Clients that drop
   thoughts send signatures back. Another server's is not read. */
#define MT_GEMINI_CARRIED "motet:"

/* Reads the body of :generateContent, of its stream, or of :countTokens. False: *why. */
bool mt_gemini_read(mt_ask *ask, mt_failure *why) MT_NODISCARD;
bool mt_gemini_read_stream(mt_ask *ask, mt_failure *why) MT_NODISCARD;
bool mt_gemini_read_count(mt_ask *ask, mt_failure *why) MT_NODISCARD;

/* A new body in which all names of fields are in camel case: Google's API takes "inline_data" for "inlineData". What
   clients name themselves, such as arguments of tools, is left as it is. */
json_t *mt_gemini_camel(const json_t *body);

/* A new JSON schema of one as Google writes it: with types in capitals, "nullable" and "propertyOrdering". */
json_t *mt_gemini_schema(const json_t *schema);

/* Puts the members of "generationConfig" into `to`, a body with OpenAI's field names. False: *why. */
bool mt_gemini_settings(mt_ask *ask, const json_t *body, json_t *to, mt_failure *why) MT_NODISCARD;

/* Replaces OpenAI's name of the field at fault by Google's; name: of a field of OpenAI's, such as ask->source_field;
   Google's, or the same where there is none. */
void mt_gemini_rename(mt_failure *why);
const char *mt_gemini_name(const char *name);

/* Puts how closely a picture is looked at into `to`, as OpenAI's "detail", of Google's "MEDIA_RESOLUTION_LOW" and its
   kin. False: it is none of them; NULL is fine. */
bool mt_gemini_detail(const json_t *resolution, json_t *to) MT_NODISCARD;

/* Reads "tools" and "toolConfig" of the body into the ask. False: *why. */
bool mt_gemini_tools(mt_ask *ask, const json_t *body, mt_failure *why) MT_NODISCARD;

/* Appends {"error":{"code":..,"message":..,"status":..}}. */
void mt_gemini_error(mt_buf *out, const mt_failure *why);

#endif
