/* Put before PCRE2 by the loader, it makes a preparation thread that is to tokenize the word "hang" never come back:
   stands for whatever such a thread might one day not end. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include <pcre2.h>

typedef int match(const pcre2_code *code, PCRE2_SPTR text, PCRE2_SIZE len, PCRE2_SIZE from, uint32_t options,
                  pcre2_match_data *data, pcre2_match_context *context);

int pcre2_match(const pcre2_code *code, PCRE2_SPTR text, PCRE2_SIZE len, PCRE2_SIZE from, uint32_t options,
                pcre2_match_data *data, pcre2_match_context *context)
{
    void *next = dlsym(RTLD_NEXT, "pcre2_match_8");
    match *real;

    while (len == 4 && memcmp(text, "hang", 4) == 0)
        pause();
    memcpy(&real, &next, sizeof(real)); /* C has no other way from one kind of pointer to the other */
    return real(code, text, len, from, options, data, context);
}
