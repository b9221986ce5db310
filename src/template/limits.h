/* Limits of src/template and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_TEMPLATE_LIMITS_H
#define MT_TEMPLATE_LIMITS_H

/* templates */
#define MT_LIMIT_TEMPLATE_NESTING 200         /* nesting of expressions and blocks */
#define MT_LIMIT_TEMPLATE_NAMES 4096          /* variables of a scope */
#define MT_LIMIT_TEMPLATE_DEPTH 1000          /* nesting of evaluations */
#define MT_LIMIT_TEMPLATE_STEPS 10000000      /* of one rendering; a step is about the work of an addition */
#define MT_LIMIT_TEMPLATE_MEMORY (256u << 20) /* bytes of one rendering */
#define MT_LIMIT_TEMPLATE_OUTPUT (64u << 20)  /* bytes of a string, and so of the rendered text */
#define MT_LIMIT_TEMPLATE_RANGE 100000        /* numbers of a range(), as in Jinja2's sandbox */

#endif
