/* Every limit of the program, together. Each is enforced where it is named. A test that meets it names it, too, or
   tests/limits.txt says which one does, or why none: `make lint` looks. */
#ifndef MT_BASE_LIMITS_H
#define MT_BASE_LIMITS_H

/* text */
#define MT_LIMIT_ERROR_TEXT 1024 /* bytes of an error's sentence, NUL included */
#define MT_LIMIT_LOG_LINE 4096   /* bytes of one log line */
#define MT_LIMIT_PATH 4096       /* bytes of a file path, NUL included */

/* memory */
#define MT_LIMIT_RESERVE_PIECES 8          /* of a reserve for when the system refuses memory */
#define MT_LIMIT_RESERVE_PIECE (8ul << 20) /* bytes of each: of addresses, nobody writes there */

/* JSON */
#define MT_LIMIT_JSON_DEPTH 512          /* nested containers */
#define MT_LIMIT_CONFIG_BYTES (4u << 20) /* config.json and its siblings */

/* templates */
#define MT_LIMIT_TEMPLATE_BYTES (1u << 20)      /* of a template's text */
#define MT_LIMIT_OWN_TEMPLATE_BYTES (128 << 10) /* of one that a client sends */
#define MT_LIMIT_OWN_TEMPLATES 8                /* of these that are kept compiled */
#define MT_LIMIT_TEMPLATE_NESTING 200           /* expressions and blocks inside one another */
#define MT_LIMIT_TEMPLATE_NAMES 4096            /* variables of a scope */
#define MT_LIMIT_TEMPLATE_DEPTH 1000            /* evaluations inside one another */
#define MT_LIMIT_TEMPLATE_STEPS 10000000        /* of one render; one is about the work of an addition */
#define MT_LIMIT_TEMPLATE_MEMORY (256u << 20)   /* of one render */
#define MT_LIMIT_TEMPLATE_OUTPUT (64u << 20)    /* bytes of a string, and so of the text rendered */
#define MT_LIMIT_TEMPLATE_RANGE 100000          /* numbers of a range(), as in Jinja2's sandbox */

/* messages */
#define MT_LIMIT_MESSAGES 100000   /* of a request */
#define MT_LIMIT_TOOL_RESULTS 1024 /* behind one message that are put in order */
#define MT_LIMIT_CUT_PROBES 16     /* renders that look for the starts of turns, where loops do not tell them */
#define MT_LIMIT_TURN_STARTS 16    /* different tokens that turns begin with */

/* what models write */
#define MT_LIMIT_PARSE_HELD (1u << 20) /* bytes held back until it is known what they are */
#define MT_LIMIT_PARSE_CALLS 128       /* tool calls of an answer; more are dropped */
#define MT_LIMIT_PARSE_NAME 256        /* bytes of the name of a tool, of an argument, of an id */

/* checkpoints */
#define MT_LIMIT_HEADER_BYTES (256u << 20) /* a safetensors header */
#define MT_LIMIT_TENSORS 1000000           /* tensors of a checkpoint */
#define MT_LIMIT_TENSOR_NAME 512           /* bytes of a tensor's name */
#define MT_LIMIT_TENSOR_DIMS 8
#define MT_LIMIT_SHARDS 1024
#define MT_LIMIT_MAPPINGS (4 * MT_LIMIT_SHARDS) /* files that are known when one of them cannot be read any more */

/* models */
#define MT_LIMIT_LAYERS 512
#define MT_LIMIT_EXPERTS 4096
#define MT_LIMIT_EXPERTS_PER_TOKEN 64
#define MT_LIMIT_EXPERT_GROUPS 64
#define MT_LIMIT_HEAD_DIM 1024
#define MT_LIMIT_CONV_TAPS 16     /* of the convolution of a recurrent layer */
#define MT_LIMIT_STATE_HEADS 1024 /* of a recurrent layer */
#define MT_LIMIT_WIDTH (1u << 20) /* hidden, intermediate and projection widths */
#define MT_LIMIT_VOCAB (1u << 22)
#define MT_LIMIT_CONTEXT (1u << 24)
#define MT_LIMIT_ENCODER_CONTEXT (1u << 16) /* positions of an encoder, which sees a text all at once */

/* tokenizers */
#define MT_LIMIT_TOKENIZER_BYTES (256u << 20)   /* a tokenizer.json */
#define MT_LIMIT_TOKENIZER_SETTINGS (64u << 20) /* what it holds besides vocabulary and merges, in memory */
#define MT_LIMIT_TOKENIZER_STAGES 64            /* of a normalizer or pre-tokenizer */
#define MT_LIMIT_TOKENIZER_AROUND 64            /* tokens put before or behind a text */
#define MT_LIMIT_TOKENIZER_TEXT (1u << 30)      /* bytes a text may grow to on its way */
#define MT_LIMIT_TOKEN_BYTES 65536              /* bytes of a token's spelling */
#define MT_LIMIT_TOKEN_AFFIX 64                 /* bytes of what marks the start or end of a word */
#define MT_LIMIT_DECODER_STEPS 8                /* of each kind */
#define MT_LIMIT_REGEX 16384                    /* bytes of a regular expression */
#define MT_LIMIT_REGEX_STACK (64u << 20)        /* memory of a match */
#define MT_LIMIT_ENCODE_BYTES (64u << 20)       /* a text to tokenize */
#define MT_LIMIT_STOP_STRINGS 32
#define MT_LIMIT_STOP_BYTES 1024 /* of each */

/* http: where a server is not told otherwise */
#define MT_LIMIT_HTTP_CONNECTIONS 4096            /* of one address; a third more are for others */
#define MT_LIMIT_HTTP_SPARE 32                    /* beyond, for what is always answered */
#define MT_LIMIT_HTTP_HEAD_BYTES 32768            /* request line and headers */
#define MT_LIMIT_HTTP_HEADERS 100                 /* of a request */
#define MT_LIMIT_HTTP_BODY_BYTES (128u << 20)     /* of a request */
#define MT_LIMIT_HTTP_BODIES_BYTES (1u << 30)     /* all bodies being read */
#define MT_LIMIT_HTTP_PIPELINE_BYTES (256u << 10) /* read ahead of the request being answered */
#define MT_LIMIT_HTTP_OUTPUT_PAUSE (256u << 10)   /* waiting for a client, when its producer pauses */
#define MT_LIMIT_HTTP_OUTPUT_DROP (16u << 20)     /* waiting for a client, when it is dropped */
#define MT_LIMIT_HTTP_IDLE_MS 75000               /* between requests */
#define MT_LIMIT_HTTP_HEAD_MS 20000               /* to send a head */
#define MT_LIMIT_HTTP_BODY_MS 300000              /* to send a body */
#define MT_LIMIT_HTTP_SEND_MS 60000               /* without taking a byte of the answer */
#define MT_LIMIT_HTTP_LINGER_MS 2000              /* to close after us */

/* http: always */
#define MT_LIMIT_HTTP_CHUNK_EXTENSIONS 1024  /* bytes of all extensions of a body's chunks */
#define MT_LIMIT_WARNINGS 4096               /* bytes of an answer's warnings */
#define MT_LIMIT_HTTP_EXTRA 8                /* headers of an answer that a hook adds */
#define MT_LIMIT_TIMEOUT_SECONDS (7 * 86400) /* that a request may ask for */
#define MT_LIMIT_TIMEOUT_MS 50               /* between looks at whose time is over */
#define MT_LIMIT_HTTP_NAME 128               /* bytes of what a client calls a request */
#define MT_LIMIT_HTTP_PARAMS 4               /* of a path pattern */
#define MT_LIMIT_HTTP_TURN 32                /* requests of one client before others have their turn */
#define MT_LIMIT_HTTP_ERROR_BYTES 65536      /* body of an error */
#define MT_LIMIT_HTTP_SOCKETS 8              /* addresses of a host that are listened at */
#define MT_LIMIT_HTTP_PROXIES 64             /* addresses and networks of proxies that are trusted */

/* media: where the server is not told otherwise */
#define MT_LIMIT_MEDIA_BYTES (64u << 20)        /* of a picture or a video as it came */
#define MT_LIMIT_MEDIA_PIXELS (64u << 20)       /* of a picture */
#define MT_LIMIT_MEDIA_VIDEO_PIXELS (16u << 20) /* of a frame of a video; 4K has half of it */
#define MT_LIMIT_MEDIA_FRAMES 36000             /* of a video: 20 minutes at 30 a second */
#define MT_LIMIT_MEDIA_SECONDS 3600             /* of a video */
#define MT_LIMIT_MEDIA_FETCH_MS 20000           /* for a URL, its redirects included */

/* media: always */
#define MT_LIMIT_MEDIA_SIDE 65535              /* pixels of a side */
#define MT_LIMIT_MEDIA_SCANS 100               /* of a progressive JPEG; encoders write about ten */
#define MT_LIMIT_MEDIA_STREAMS 64              /* of a video's file */
#define MT_LIMIT_MEDIA_SAMPLES (4 << 20)       /* that an MP4 lists, sound included */
#define MT_LIMIT_MEDIA_VIDEO_WORK (1ull << 37) /* pixels of all frames: an hour of 720p, ten minutes of 4K */
#define MT_LIMIT_DARK_SECONDS 900              /* of a processor, for all pictures and videos of a request */
#define MT_LIMIT_DARK_AGAIN_US 100000          /* until a process that could not be begun is tried again */
#define MT_LIMIT_DARK_TAKES 10000              /* times that a picture or a frame asks for memory */
#define MT_LIMIT_DARK_IMAGE_MS 120000          /* for one picture, which takes a second where it is large */
#define MT_LIMIT_DARK_SLACK (512ul << 20)      /* bytes beside what was asked for: code, input, what comes out */
#define MT_LIMIT_MEDIA_URL 4096                /* bytes of a URL that is fetched */
#define MT_LIMIT_MEDIA_REDIRECTS 5             /* followed */

/* names */
#define MT_LIMIT_HUB_NAME 256                  /* bytes of a model's name, of a revision, NUL included */
#define MT_LIMIT_LOCAL_MODELS 4096             /* that are listed */
#define MT_LIMIT_LOCAL_FILES 100000            /* of a model that are looked at */
#define MT_LIMIT_PULL_ANSWER (32u << 20)       /* bytes of a hub's list of files */
#define MT_LIMIT_PULL_FILES 4096               /* of a model that are downloaded */
#define MT_LIMIT_PULL_FILE_BYTES (1ll << 50)   /* of each */
#define MT_LIMIT_PULL_SMALL_BYTES (256u << 20) /* of each that is no weights: a tokenizer.json */
#define MT_LIMIT_PULL_AT_ONCE 32               /* files downloaded side by side */
#define MT_LIMIT_PULL_REDIRECTS 5              /* followed */
#define MT_LIMIT_PULL_URL 16384                /* bytes of a URL; those of other hosts are signed and long */
#define MT_LIMIT_PULL_TRIES 4                  /* of a request that brings nothing, each after a longer pause */
#define MT_LIMIT_PULL_FILE_TRIES 7             /* the same, of one for a file */
#define MT_LIMIT_PULL_WAIT_S 120               /* that a hub may ask to wait; more is an error that says so */
#define MT_LIMIT_PULL_STALL_MS 30000           /* without a byte, after which a transfer counts as broken */

/* compute */
#define MT_LIMIT_PATCHES 65536 /* of a picture or a video: 16 million pixels, 14 or 16 to a side */
#define MT_LIMIT_THREADS 256
#define MT_LIMIT_BATCH_ROWS 8192 /* rows of one step */
#define MT_LIMIT_SEQUENCES 1024  /* sequences of one step */
#define MT_LIMIT_TOP_LOGPROBS 20
#define MT_LIMIT_MEMOS 16         /* sequences with a recurrent state that may guess at a time */
#define MT_LIMIT_MEMO_ROWS 4      /* and tokens each may guess */
#define MT_LIMIT_DRAFT 8          /* tokens guessed ahead in a step */
#define MT_LIMIT_LOGIT_BIAS 1024  /* entries of a request's logit_bias */
#define MT_LIMIT_REPEAT_PERIOD 64 /* tokens of a cycle that an answer is ended for */
#define MT_LIMIT_STOP_IDS 256     /* stop token ids of a request */
#define MT_LIMIT_BAD_WORDS 256    /* of a request */
#define MT_LIMIT_BAD_TOKENS 64    /* tokens of such a word */

/* constraints */
#define MT_LIMIT_GRAMMAR_NODES (1u << 20)     /* expressions of a grammar */
#define MT_LIMIT_GRAMMAR_BYTES (32u << 20)    /* texts in it */
#define MT_LIMIT_GRAMMAR_TEXT (8u << 20)      /* bytes of a grammar in GBNF */
#define MT_LIMIT_PROGRAM_CODE (1u << 20)      /* instructions that a grammar is compiled to */
#define MT_LIMIT_GRAMMAR_NESTING 100          /* brackets in a regular expression or in GBNF */
#define MT_LIMIT_GRAMMAR_MARKER 64            /* bytes of a marker that is looked for */
#define MT_LIMIT_GRAMMAR_SEARCH 8192          /* bytes of all that are looked for at once */
#define MT_LIMIT_GRAMMAR_FRAMES 256           /* rules within one another; JSON takes three or four for each level */
#define MT_LIMIT_GRAMMAR_EMPTY_REPEAT 32      /* rounds of a repetition of what may be empty */
#define MT_LIMIT_AUTOMATON_STATES 4096        /* of a constraint that are known at once */
#define MT_LIMIT_AUTOMATON_STACKS (1u << 14)  /* frames of all of them */
#define MT_LIMIT_AUTOMATON_PLACES (1u << 16)  /* of one state */
#define MT_LIMIT_CONSTRAINT_RUNS 8192         /* answers that follow one constraint */
#define MT_LIMIT_CONSTRAINTS 64               /* that are kept after their last request */
#define MT_LIMIT_CONSTRAINT_MASKS (32u << 20) /* bytes of the masks that are kept */
#define MT_LIMIT_CONSTRAINT_BYTES (1u << 28)  /* of them, the vocabulary's index and all that is compiled */
#define MT_LIMIT_CONSTRAINT_SHARE 16          /* which is at most one part of so many of --memory */
#define MT_LIMIT_CONSTRAINT_ONE (32u << 20)   /* bytes of the largest that can be compiled */
#define MT_LIMIT_SHAPE_CALLS 32               /* calls of an answer that has to call */
#define MT_LIMIT_CHOICE_LIST (1u << 20)       /* texts that an answer is to be one of */
#define MT_LIMIT_REGEX_NODES 4096             /* of regular expressions that have to match together */
#define MT_LIMIT_REGEX_CATEGORIES 8           /* of Unicode, in a regular expression */
#define MT_LIMIT_REGEX_WORK (4u << 20)        /* nodes and formulas looked at to make that automaton */
#define MT_LIMIT_REGEX_WORK_ALL (12u << 20)   /* for all of a constraint: about half a second */
#define MT_LIMIT_SCHEMA_PATTERNS 256          /* regular expressions of a schema */
#define MT_LIMIT_SCHEMA_MEMBERS 200000        /* properties of all places of a schema */
#define MT_LIMIT_AUTOMATON_WORK (1u << 20)    /* places visited for one mask: about 40 ms */
#define MT_LIMIT_REGEX_STATES 16384           /* of the automaton that they make */
#define MT_LIMIT_SCHEMA_RULES 4096            /* different places of a schema */
#define MT_LIMIT_SCHEMA_PARTS 128             /* schemas that apply to one place together */
#define MT_LIMIT_SCHEMA_STRINGS 24            /* of them that say what a string looks like */
#define MT_LIMIT_SCHEMA_KEY_PATTERNS 24       /* patterns of one object's properties */
#define MT_LIMIT_SCHEMA_ONE_OF 512            /* alternatives of a oneOf */
#define MT_LIMIT_SCHEMA_COMPARED (1u << 20)   /* pairs of schemas that are compared */
#define MT_LIMIT_SCHEMA_APART (1u << 26)      /* steps in telling pairs apart */
#define MT_LIMIT_SCHEMA_JUDGED (1u << 24)     /* steps to find which listed values are valid */
#define MT_LIMIT_SCHEMA_PATH 512              /* bytes of a place's name in a sentence */
#define MT_LIMIT_SCHEMA_PROPERTIES 2048       /* of an object, or schemas in the prefixItems of an array */
#define MT_LIMIT_SCHEMA_COUNTED 20000         /* rules of an object or array: its length times how far it counts */

/* requests */
#define MT_LIMIT_COUNTED 4              /* contexts, of a prompt whose tokens are counted to tell that it is too long */
#define MT_LIMIT_CHOICES 128            /* answers of one call: prompts times n */
#define MT_LIMIT_EMBEDDINGS 2048        /* texts of one call for embeddings or scores, as OpenAI has it */
#define MT_LIMIT_EMBEDDING_FLIGHT 16    /* of them that the engine has at a time */
#define MT_LIMIT_BODY_BYTES (64u << 20) /* of a request */
#define MT_LIMIT_JSON_LEAST (8u << 20)  /* what a parsed body may have where memory is short: a small one fits */
#define MT_LIMIT_JSON_MEMORY (256u << 20)    /* of a parsed body */
#define MT_LIMIT_JSON_SURE (1u << 20)        /* of a string of it: what is longer may be refused by the system */
#define MT_LIMIT_JSON_TRIM (1u << 20)        /* of a body, after which memory is given back to the system */
#define MT_LIMIT_REQUEST_MEMORY (256u << 20) /* what is prepared from it */
#define MT_LIMIT_ANSWER_BYTES (64u << 20)    /* text of an answer that is not streamed */
#define MT_LIMIT_RESPONSE_BYTES (256u << 20) /* of an answer with all its logprobs */
#define MT_LIMIT_EOS 32                      /* tokens that end an answer */
#define MT_LIMIT_API_KEYS 1024               /* that are accepted */
#define MT_LIMIT_KEY_NAME 64                 /* bytes of what one is called, NUL included */
#define MT_LIMIT_PREPARING 256               /* calls that wait for a preparation thread */
#define MT_LIMIT_REQUESTS_ALONE (640u << 20) /* bytes for requests, where there is no engine that shares out memory */
#define MT_LIMIT_PREPARE_COST 6              /* bytes that preparing a byte of a body takes at most */
#define MT_LIMIT_TOKEN_COST 24               /* bytes that a token takes which is counted and nothing else */
#define MT_LIMIT_SMALL_BODY (256u << 10)     /* bytes; larger ones are prepared one at a time, in a lane of their own */
#define MT_LIMIT_PREPARING_LARGE 256         /* calls with large bodies that wait for that */
#define MT_LIMIT_COMPILING_MS 100            /* for a small body's constraint; one that takes longer goes there, too */
#define MT_LIMIT_PREPARING_MEDIA 256         /* calls with pictures that wait for one of theirs */
#define MT_LIMIT_END_MS 3000                 /* for threads to end, after the time for answers */
#define MT_LIMIT_CRASH_IDS 4096              /* of calls that a crash names */
#define MT_LIMIT_CRASH_ID 64                 /* bytes of each, NUL included */
#define MT_LIMIT_STEP_NAMED 8                /* answers of a step that takes too long, that the log names */
#define MT_LIMIT_STATE_BYTES (16u << 20)     /* of what SIGQUIT writes */
#define MT_LIMIT_OUTBOX 256                  /* events that may wait for the io thread before a call is paused */
#define MT_LIMIT_MEDIA_PARTS 256             /* pictures and videos of a request */
#define MT_LIMIT_MEDIA_LIST 768              /* frames of a video that is sent as a list of pictures */
#define MT_LIMIT_MEDIA_FPS 240               /* frames a second that may be asked for */
#define MT_LIMIT_EVENT_LOG (32u << 20)       /* events of a background answer, kept for who comes back to its stream */
#define MT_LIMIT_WATCHERS 16                 /* clients that follow one background answer, besides who asked for it */
#define MT_LIMIT_SCORE_NOTES (128u << 10)    /* of what was computed lately that are kept; fewer with little memory */
#define MT_LIMIT_SCORE_VOICES (8u << 10)     /* and of answers that have ended */
#define MT_LIMIT_SCORE_SECONDS 3600          /* that figures are kept for */
#define MT_LIMIT_DASHBOARDS 32               /* that are open at a time */
#define MT_LIMIT_PULLS 4                     /* models that are fetched for clients at a time */
#define MT_LIMIT_PULL_BODY 4096              /* bytes of a request for that */
#define MT_LIMIT_DISK_RECORDS (1u << 20)     /* that the cache on disk has at a time */
#define MT_LIMIT_DISK_FILES 256              /* each of which is open: every process begins one */
#define MT_LIMIT_DISK_LEAST (64ul << 20)     /* bytes of the cache on disk, at least */
#define MT_LIMIT_EVENT_BATCHES 10000         /* of KV events that are kept for who missed some, or wait to be sent */
#define MT_LIMIT_EVENT_BYTES (32u << 20)     /* of each of these */
#define MT_LIMIT_EVENT_BATCH (8u << 20)      /* bytes of one */
#define MT_LIMIT_REMOTE_QUEUE (64ul << 20)   /* bytes that wait to be sent to a shared store */
#define MT_LIMIT_STORE_QUEUE 4096            /* answers that wait to be written to the store */
#define MT_LIMIT_STORE_BYTES (128ul << 20)   /* of these together */
#define MT_LIMIT_STORE_CHAIN 1000            /* responses that follow one another */
#define MT_LIMIT_ITEMS_PAGE 100              /* items that are listed at once */
#define MT_LIMIT_ITEMS_PAGE_DEFAULT 20       /* the same, for clients that do not say */
#define MT_LIMIT_USABLE_CONTEXT 8192         /* tokens for which a model has room at least, if it is one of several */
#define MT_LIMIT_MODELS 1024                 /* that a server knows */
#define MT_LIMIT_LOADING 1024                /* calls that wait for models to be loaded */
#define MT_LIMIT_OPTION_LIST 16              /* times an option may be given that may be given often */
#define MT_LIMIT_OPTION_FILE (1u << 20)      /* bytes of a config file */

#endif
