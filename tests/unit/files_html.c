/* HTML as text: what becomes of tags, white space, entities, and of pages that are not well formed. */
#include "unit.h"

#include <string.h>

#include "base/alloc.h"
#include "files/html.h"

static void expect(const char *page, const char *text)
{
    mt_buf out = {.limit = strlen(page) + 1};

    assert_true(mt_files_html(&out, page, strlen(page)));
    assert_string_equal(out.len ? out.data : "", text);
    mt_buf_free(&out);
}

static void blocks_begin_lines(void **state)
{
    (void)state;
    expect("", "");
    expect("<p></p>", "");
    expect("plain", "plain\n");
    expect("<p>One<p>two<br>three<div>four</div>five", "One\ntwo\nthree\nfour\nfive\n");
    expect("<P>One</P><DIV><DIV>two", "One\ntwo\n");
    expect("a<b>b</b><i>c</i>", "abc\n");
    expect("<ul><li>a<li>b</ul>", "a\nb\n");
    expect("<table><tr><td>a</td><td>b</td></tr><tr><th>c</th><td>d</td></tr></table>", "a\tb\nc\td\n");
}

static void white_space_is_one_blank(void **state)
{
    (void)state;
    expect("  a \n\t b\r\n", "a b\n");
    expect("<p> a </p> <p> b </p>", "a\nb\n");
    expect("a&nbsp; b", "a b\n");
}

static void preformatted_text_keeps_its_lines(void **state)
{
    (void)state;
    expect("x<pre>a\n  b\n\nc</pre>d  e", "x\na\n  b\n\nc\nd e\n");
    expect("<pre>\n\na</pre>", "a\n");
    expect("<td>x</td><pre>\ny</pre>", "x\ny\n");
    expect("<pre>a</pre></pre>b  c", "a\nb c\n");
    expect("<textarea>a\nb", "a\nb\n");
}

static void scripts_styles_and_comments_are_left_out(void **state)
{
    (void)state;
    expect("a<script>var x = '<p>';</script>b", "ab\n");
    expect("a<STYLE>p { }</Style >b<svg><text>c</text></svg>", "ab\n");
    expect("a<!-- <p> -- > -->b<!doctype html><?php echo ?>c", "abc\n");
    expect("<!---->a", "a\n");
    expect("a<script>if (a < b)", "a\n");
    expect("a<!-- b", "a\n");
}

static void tags_end_behind_their_values(void **state)
{
    (void)state;
    expect("<a title=\">\" href='x>y'>b</a>c", "bc\n");
    expect("<a title=it's>b", "b\n");
    expect("<a title=\"b", "");
    expect("a < b <c> 3<4 <", "a < b 3<4 <\n");
    expect("<verylongelementname>a", "a\n");
    expect("<h1>a</h1><h7>b", "a\nb\n");
}

static void entities_are_characters(void **state)
{
    (void)state;
    expect("&lt;p&gt; &amp;amp; &quot;&apos;", "<p> &amp; \"'\n");
    expect("&#65;&#x42;&#X43;&euro;&Auml;", "ABC\xE2\x82\xAC\xC3\x84\n");
    expect("&#128512;&#x1F600;", "\xF0\x9F\x98\x80\xF0\x9F\x98\x80\n");
    expect("a&shy;b", "ab\n");
    expect("AT&T & co; &unknown; &", "AT&T & co; &unknown; &\n");
    expect("&#0;&#xD800;&#1114112;&#7;&#;&#x;&#-1;&#+65;&# 65;&#x0x41;",
           "&#0;&#xD800;&#1114112;&#7;&#;&#x;&#-1;&#+65;&# 65;&#x0x41;\n");
}

static void the_text_is_bounded(void **state)
{
    mt_buf out = {.limit = 4};
    (void)state;
    assert_false(mt_files_html(&out, "abcdefgh", 8));
    assert_true(out.len <= 4);
    mt_buf_free(&out);
}

static void pages_are_known_by_beginning_or_name(void **state)
{
    static const struct {
        const char *bytes, *name;
        bool html;
    } all[] = {{"<!DOCTYPE html><p>", NULL, true},
               {" \n<HTML lang=en>", NULL, true},
               {"\xEF\xBB\xBF<head>", NULL, true},
               {"<p>One", NULL, false},
               {"<p>One", "a.HTML", true},
               {"<p>One", "a.htm", true},
               {"<p>One", ".html", false},
               {"<p>One", "html", false},
               {"<?xml version=\"1.0\"?>", "a.xml", false},
               {"", NULL, false},
               {"<htm", NULL, false}};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (mt_files_is_html(all[i].bytes, strlen(all[i].bytes), all[i].name, all[i].name ? strlen(all[i].name) : 0) !=
            all[i].html)
            fail_msg("%s %s", all[i].bytes, all[i].name ? all[i].name : "");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(blocks_begin_lines),
    cmocka_unit_test(white_space_is_one_blank),
    cmocka_unit_test(preformatted_text_keeps_its_lines),
    cmocka_unit_test(scripts_styles_and_comments_are_left_out),
    cmocka_unit_test(tags_end_behind_their_values),
    cmocka_unit_test(entities_are_characters),
    cmocka_unit_test(the_text_is_bounded),
    cmocka_unit_test(pages_are_known_by_beginning_or_name),
};

UNIT_MAIN(tests)
