#!/usr/bin/env python3
"""Templates that requests bring along, made to run for ever, to fill memory or to reach what is none of theirs.

usage: tests/attack/template_requests.py --motet PROGRAM [NAME ...]"""

from checkpoints import Attack

attack = Attack("attack_template_requests")

STEPS = "the template takes too many steps; make its loops shorter"
MEMORY = "the template needs more memory than it may have"
LONG = "a text of more than 67108864 bytes"
NUMBER = "an integer beyond 64 bits"
RANGE = "Range too big"
DEEP = "evaluations inside one another"
NESTED = "inside one another"
LAST = "{{ messages[0].content }}"


def case(name, template, words=None, **more):
    attack.request(name, words, chat_template=template, **more)


def loops(count, body, source="range(100000)"):
    names = ["i{}".format(n) for n in range(count)]
    return "".join("{{% for {} in {} %}}".format(n, source) for n in names) + body + "{% endfor %}" * count


# Without an end
case("a_macro_that_calls_itself", "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", DEEP)
case("macros_that_call_each_other",
     "{% macro f(x) %}{{ g(x) }}{% endmacro %}{% macro g(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", DEEP)
case("a_macro_that_is_given_itself", "{% macro f(g) %}{{ g(g) }}{% endmacro %}{{ f(f) }}", DEEP)
case("a_macro_that_calls_its_caller",
     "{% macro f() %}{{ caller() }}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}"
     "{% call f() %}x{% endcall %}", "")
case("a_macro_that_calls_itself_twice",
     "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}", MEMORY)
case("a_recursive_loop", "{% for x in [[1]] recursive %}{{ loop([[1]]) }}{% endfor %}", DEEP)
case("loops_in_loops", loops(8, ""), STEPS)
case("loops_in_loops_that_write", loops(3, "x" * 1000), "")
case("loops_over_long_texts", "{% set x = 'a' * 1000000 %}" + loops(2, "", "x"), MEMORY)
case("a_loop_with_a_condition_that_is_never_true", "{% for i in range(100000) if i > 100000 %}{% endfor %}" * 200,
     STEPS)
case("a_range_of_all_numbers", "{% for i in range(999999999999) %}{% endfor %}", RANGE)
case("a_range_without_step", "{% for i in range(1, 5, 0) %}{% endfor %}", "")
case("a_range_that_goes_down_for_ever", "{% for i in range(0, -9223372036854775808, -1) %}{% endfor %}", "")
case("a_range_that_wraps", "{{ range(-9223372036854775808, 9223372036854775807, 9223372036854775807) | list }}", NUMBER)

# Growth
case("a_text_that_doubles", "{% set x = 'a' %}" + "{% set x = x ~ x %}" * 64 + "{{ x }}", MEMORY)
case("a_text_that_doubles_in_a_loop",
     "{% set n = namespace(x='a') %}{% for i in range(64) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x }}", MEMORY)
case("a_text_times_a_billion", "{{ 'ab' * 1000000000 }}", LONG)
case("a_text_times_the_largest_number", "{{ 'ab' * 9223372036854775807 }}", LONG)
case("a_list_times_a_billion", "{{ ([1, 2] * 1000000000) | length }}", MEMORY)
case("lists_in_lists", "{% set x = [1] %}" + "{% set x = [x, x, x, x] %}" * 40 + "{{ x }}", MEMORY)
case("a_list_that_doubles", "{% set x = [1] %}" + "{% set x = x + x %}" * 40 + "{{ x | length }}", MEMORY)
case("a_namespace_that_grows",
     "{% set n = namespace(x=[]) %}{% for i in range(100000) %}{% set n.x = n.x + [i] %}{% endfor %}", "")
case("a_list_that_holds_itself", "{% set x = [] %}{% set _ = x.append(x) %}{{ x }}{{ x | tojson }}", "")
case("a_dict_that_holds_itself", "{% set x = {} %}{% set _ = x.update({'x': x}) %}{{ x }}", "")
case("a_list_that_grows_while_it_is_read",
     "{% set x = [1] %}{% for i in x %}{% set _ = x.append(i) %}{% endfor %}", "")
case("joins_of_joins",
     "{% set x = ['a' * 1000] * 1000 %}{% for i in range(1000) %}{{ x | join(x | join) }}{% endfor %}", MEMORY)
case("a_replacement_of_nothing", "{{ ('a' * 60000) | replace('', 'b' * 60000) }}", MEMORY)
case("a_replacement_that_grows", "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}", MEMORY)
case("a_format_as_wide_as_can_be", "{{ '%999999999d' % 1 }}", LONG)
case("a_format_filter_as_wide_as_can_be", "{{ '%*d' | format(2147483647, 1) }}", LONG)
case("a_format_of_the_newer_kind", "{{ '{:>999999999}'.format('x') }}", LONG)
case("a_format_that_looks_inside", "{{ '{0.__class__.__mro__}'.format(messages) }}", "")
case("a_text_that_is_centred_far_out", "{{ 'x' | center(2147483647) }}", LONG)
case("an_indent_as_wide_as_can_be", "{{ ('x\n' * 1000) | indent(1000000) }}", MEMORY)
case("a_tojson_with_a_giant_indent", "{{ messages | tojson(indent=1000000000) }}", LONG)
case("a_tojson_with_a_negative_indent", "{{ messages | tojson(indent=-9223372036854775808) }}", NUMBER)
case("a_tojson_of_nested_lists", "{% set x = [1] %}" + "{% set x = [x] %}" * 3000 + "{{ x | tojson }}", DEEP)
case("a_tojson_with_deep_indents",
     "{% set n = namespace(x=[1]) %}{% for i in range(400) %}{% set n.x = [n.x] %}{% endfor %}"
     "{{ n.x | tojson(indent=1000000) }}", MEMORY)
case("a_power_of_powers", "{{ 9 ** 9 ** 9 ** 9 }}", "")
case("a_number_of_a_hundred_thousand_digits", "{{ " + "9" * 100000 + " }}", "")
case("a_shift_by_much", "{{ 10 ** 308 * 10 ** 308 }} {{ -(2 ** 63) // -1 }}", "")
case("a_remainder_that_overflows", "{{ (-9223372036854775807 - 1) % -1 }}")
case("a_slice_of_everything", "{{ ('x' * 1000000)[::-9223372036854775808] }}", NUMBER)
case("a_batch_of_batches", "{{ range(100000) | batch(1, 'x' * 60000) | list | length }}")
case("slices_without_number", "{{ range(10) | slice(0) | list }}", "")
case("slices_by_the_billion", "{{ range(10) | slice(1000000000) | list | length }}", MEMORY)

# Order and kinds
case("a_sort_of_all_kinds", "{{ [1, 'a', none, [], {}, 1.5, true] | sort }}", "")
case("a_sort_of_numbers_that_are_none", "{{ ['nan' | float, 1, 'inf' | float, 2] | sort }}")
case("a_groupby_of_all_kinds", "{{ [{'a': 1}, {'a': 'x'}, {'a': none}, 3] | groupby('a') }}", "")
case("a_groupby_along_a_long_path", "{{ messages | groupby('" + "a." * 20000 + "') }}", "")
case("a_sort_by_a_missing_attribute", "{{ [{}, {}, {}] | sort(attribute='x.y.z') }}", "")
case("a_unique_of_many", "{{ range(100000) | list | unique | list | length }}")
case("a_sum_of_texts", "{{ ['a', 'b'] | sum }}", "")
case("a_sum_of_lists", "{{ ([[1] * 1000] * 10000) | sum(start=[]) | length }}", MEMORY)
case("a_dict_with_lists_as_keys", "{{ {[1]: 2} }}", "")

# What is not the template's
for number, text in enumerate(("messages.__class__", "messages.__class__.__mro__[1].__subclasses__()", "f.__globals__",
                               "''.__class__.__base__", "cycler.__init__.__globals__.os", "self.__dict__",
                               "joiner.__init__", "lipsum.__globals__", "namespace.__init__.__globals__",
                               "request.application", "config.items()", "get_flashed_messages()", "open('/etc/passwd')",
                               "messages | attr('__class__') | attr('__base__')", "url_for.__globals__",
                               "(messages | map(attribute='__class__') | list)[0].x", "raise_exception.__closure__.x",
                               "strftime_now.__code__.co_consts[0]")):
    case("an_attribute_that_is_not_there_{}".format(number), "{{ " + text + " }}" + LAST,
         None if number in (0, 5, 6, 7) else "")
case("an_include", "{% include '/etc/passwd' %}", "")
case("an_import", "{% import 'os' as os %}{{ os.environ }}", "")
case("an_extends", "{% extends '/proc/self/environ' %}", "")
case("an_extends_of_itself", "{% extends self %}", "")
case("a_block_in_itself", "{% block a %}{{ self.a() }}{% endblock %}", DEEP)
case("a_debug", "{% debug %}", "")
case("a_do", "{% do messages.clear() %}" + LAST, "")

# Depth
case("brackets_in_brackets", "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}", NESTED)
case("lists_in_brackets", "{{ " + "[" * 5000 + "]" * 5000 + " }}", NESTED)
case("filters_after_filters", "{{ 'a'" + " | upper" * 16000 + " }}", NESTED)
case("attributes_after_attributes", "{{ messages" + "[0]" * 40000 + " }}", NESTED)
case("calls_after_calls", "{{ range" + "(1)" * 40000 + " }}", "")
case("nots_before_nots", "{{ " + "not " * 30000 + "1 }}", "")
case("minus_before_minus", "{{ " + "- " * 60000 + "1 }}", "")
case("sums_of_sums", "{{ 1" + " + 1" * 30000 + " }}", "")
case("ifs_in_ifs", "{% if 1 %}" * 3000 + "{% endif %}" * 3000, NESTED)
case("elses_behind_elses", "{% if 0 %}" + "{% elif 0 %}" * 9000 + "{% endif %}" + LAST,
     "an if of more than 200 branches")
case("conditions_in_conditions", "{{ " + "1 if 1 else " * 10000 + "1 }}", "")
case("many_names", "".join("{{% set x{} = 1 %}}".format(i) for i in range(6000)), "")
case("a_comment_without_end", "{#" * 60000, "")
case("a_raw_without_end", "{% raw %}" + "{{" * 60000, "")
case("a_text_without_end", "{{ '" + "\\" * 100001, "")
case("a_template_beyond_its_length", "a" * (128 * 1024 + 1), "")

# What it says
case("an_exception_with_control_characters",
     "{{ raise_exception('a\x1b[2J\x00\r\nb\u202e') }}", "the chat template refuses these messages: a?[2J")
case("an_exception_as_long_as_can_be", "{{ raise_exception('é' * 1000000) }}", "")
case("an_exception_of_no_text", "{{ raise_exception([messages] * 1000) }}", "")
case("an_exception_with_a_format", "{{ raise_exception('%s%n%s%n') }}", "%s%n%s%n")
case("a_time_of_many_fields", "{{ strftime_now('%c' * 40000) }}", "")
case("a_time_of_unknown_fields", "{{ strftime_now('%Q%E%O%-%_%^%#%9999999999d%:::z%') }}" + LAST)
case("a_time_without_format", "{{ strftime_now('') }}{{ strftime_now('\x00%Y') }}" + LAST)
case("a_time_as_wide_as_can_be", "{{ strftime_now('%999999999Y') }}" + LAST)
case("output_of_characters_without_width", "{{ '\u202e\u200d\ufeff\u0000\ud7ff' * 100 }}" + LAST)
case("an_escape_that_is_half_a_character", "{{ '\\ud800' }}{{ '\\udc00\\ud800' }}{{ '\\U00110000' }}", "")
case("names_of_other_alphabets", "{% set \u0430 = 1 %}{% set a = 2 %}{{ \u0430 }}{{ a }}")
case("upper_of_what_grows", "{{ ('\ufb03\u0390' * 1000000) | upper | lower | title | capitalize }}", "")
case("special_tokens_by_the_hundred_thousand", "{{ '<|begin|>' * 100000 }}", "context")

# Clients that leave
attack.leaves("steps_whose_client_leaves", chat_template=loops(8, ""))
attack.leaves("tokens_whose_client_leaves", chat_template="{{ '<|beg' * 10000000 }}")

attack.main("--allow-chat-template")
