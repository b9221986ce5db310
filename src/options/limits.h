/* Limits of src/options and of what higher layers share with it. Each is enforced where it is named; `make lint`
   looks for the test that reaches it (tests/limits.txt). */
#ifndef MT_OPTIONS_LIMITS_H
#define MT_OPTIONS_LIMITS_H

/* requests */
#define MT_LIMIT_OPTION_LIST 16         /* how often an option may be given */
#define MT_LIMIT_OPTION_FILE (1u << 20) /* bytes of a config file */

#endif
