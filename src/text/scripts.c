/* The pre-tokenizer "UnicodeScripts", which cuts where the script changes. A blank, and characters without a script or
   with one that the tokenizers library does not know, belong to the text before them; at the start of a text they are
   dropped. Hiragana and Katakana count as Han.
   It is a regular expression whose matches are the pieces. */

#include "text/limits.h"
#include "text/regex.h"

/* Scripts by their codes in ISO 15924, the most common first because they are tried first. Common, Han, Hiragana and
   Katakana are not listed: they have rules of their own. */
static const char scripts[] =
    "Latn Cyrl Grek Arab Hebr Deva Hang Thai Zinh Adlm Aghb Ahom Armi Armn Avst Bali Bamu Bass Batk Beng Bhks Bopo "
    "Brah Brai Bugi Buhd Cakm Cans Cari Cham Cher Copt Cprt Dsrt Dupl Egyp Elba Ethi Geor Glag Goth Gran Gujr Guru "
    "Hano Hatr Hluw Hmng Hung Ital Java Kali Khar Khmr Khoj Knda Kthi Lana Laoo Lepc Limb Lina Linb Lisu Lyci Lydi "
    "Mahj Mand Mani Marc Mend Merc Mero Mlym Modi Mong Mroo Mtei Mult Mymr Narb Nbat Newa Nkoo Ogam Olck Orkh Orya "
    "Osge Osma Palm Pauc Perm Phag Phli Phlp Phnx Plrd Prti Rjng Runr Samr Sarb Saur Sgnw Shaw Shrd Sidd Sind Sinh "
    "Sora Sund Sylo Syrc Tagb Takr Tale Talu Taml Tang Tavt Telu Tfng Tglg Thaa Tibt Tirh Ugar Vaii Wara Xpeo Xsux "
    "Yiii";

#define COMMON "[^\\P{sc:Zyyy} \\x{30fc}]" /* U+30FC, the mark of long vowels, counts as Han */
#define HAN "\\p{sc:Hani}\\p{sc:Hira}\\p{sc:Kana}\\x{30fc}"
#define REST "(?&none))*+"

mt_tok_regex *mt_tok_regex_of_scripts(mt_error *err)
{
    mt_tok_regex *regex;
    mt_buf pattern;

    mt_buf_init(&pattern, MT_LIMIT_REGEX);
    mt_buf_puts(&pattern, "(?(DEFINE)(?<none>[^\\p{sc:Zyyy}" HAN);
    for (const char *name = scripts; *name; name += name[4] ? 5 : 4)
        mt_buf_printf(&pattern, "\\p{sc:%.4s}", name);
    mt_buf_puts(&pattern, "]))" COMMON "(?:" COMMON "| |" REST "|[" HAN "](?:[" HAN " ]|" REST);
    for (const char *name = scripts; *name; name += name[4] ? 5 : 4)
        mt_buf_printf(&pattern, "|\\p{sc:%.4s}(?:[\\p{sc:%.4s} ]|" REST, name, name);
    regex = mt_tok_regex_native(pattern.data, pattern.len, err);
    mt_buf_free(&pattern);
    return regex;
}
