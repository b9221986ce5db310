/* Limits of src/files. Each is enforced where it is named; `make lint` looks for the test that reaches it
   (tests/limits.txt). */
#ifndef MT_FILES_LIMITS_H
#define MT_FILES_LIMITS_H

#define MT_LIMIT_FILES 10000              /* stored files, unfinished uploads included */
#define MT_LIMIT_FILE_BYTES (512ul << 20) /* bytes of one */
#define MT_LIMIT_FILE_NAME 255            /* bytes of its name */
#define MT_LIMIT_FILE_SECONDS 7776000     /* longest time after which a file may be told to expire */
#define MT_LIMIT_FORM_HEAD 8192           /* bytes of the headers of a part of a form */
#define MT_LIMIT_FORM_PARTS 32            /* parts of a form */
#define MT_LIMIT_FORM_EXTRA (1ul << 20)   /* bytes of a form beside the file */
#define MT_LIMIT_FORM_VALUE 1024          /* bytes of a field of a form that is no file */

#endif
