/* All limits of the program. Each is enforced where it is named. A test that reaches it names it, too, or
   tests/limits.txt says which one does, or why none: `make lint` checks this. */
#ifndef MT_BASE_LIMITS_H
#define MT_BASE_LIMITS_H

/* text */
#define MT_LIMIT_ERROR_TEXT 1024 /* bytes of an error's sentence, NUL included */
#define MT_LIMIT_LOG_LINE 4096   /* bytes of one log line */
#define MT_LIMIT_PATH 4096       /* bytes of a file path, NUL included */

/* memory */
#define MT_LIMIT_RESERVE_PIECES 8          /* pieces of the reserve for when the system refuses memory */
#define MT_LIMIT_RESERVE_PIECE (8ul << 20) /* bytes of each: only addresses, no memory */

/* JSON */
#define MT_LIMIT_JSON_DEPTH 512          /* nested containers */
#define MT_LIMIT_CONFIG_BYTES (4u << 20) /* config.json and its siblings */

/* templates */
#define MT_LIMIT_TEMPLATE_BYTES (1u << 20)      /* of a template's text */
#define MT_LIMIT_OWN_TEMPLATE_BYTES (128 << 10) /* of a template that a client sends */
#define MT_LIMIT_OWN_TEMPLATES 8                /* templates of clients that are kept compiled */
#define MT_LIMIT_TEMPLATE_NESTING 200           /* nesting of expressions and blocks */
#define MT_LIMIT_TEMPLATE_NAMES 4096            /* variables of a scope */
#define MT_LIMIT_TEMPLATE_DEPTH 1000            /* nesting of evaluations */
#define MT_LIMIT_TEMPLATE_STEPS 10000000        /* of one rendering; a step is about the work of an addition */
#define MT_LIMIT_TEMPLATE_MEMORY (256u << 20)   /* bytes of one rendering */
#define MT_LIMIT_TEMPLATE_OUTPUT (64u << 20)    /* bytes of a string, and so of the rendered text */
#define MT_LIMIT_TEMPLATE_RANGE 100000          /* numbers of a range(), as in Jinja2's sandbox */

/* messages */
#define MT_LIMIT_MESSAGES 100000   /* of a request */
#define MT_LIMIT_TOOL_RESULTS 1024 /* after one message that are sorted */
#define MT_LIMIT_CUT_PROBES 16     /* renderings that look for the beginnings of turns, where loops do not tell */
#define MT_LIMIT_TURN_STARTS 16    /* different tokens that turns begin with */

/* what models write */
#define MT_LIMIT_PARSE_HELD (1u << 20) /* bytes held back until it is known what they are */
#define MT_LIMIT_PARSE_CALLS 128       /* tool calls of an answer; further ones are dropped */
#define MT_LIMIT_PARSE_NAME 256        /* bytes of the name of a tool, of an argument, of an id */

/* checkpoints */
#define MT_LIMIT_HEADER_BYTES (256u << 20) /* a safetensors header */
#define MT_LIMIT_TENSORS 1000000           /* tensors of a checkpoint */
#define MT_LIMIT_TENSOR_NAME 512           /* bytes of a tensor's name */
#define MT_LIMIT_TENSOR_DIMS 8
#define MT_LIMIT_SHARDS 1024
#define MT_LIMIT_GGUF_KEYS 65536                /* keys of a GGUF file */
#define MT_LIMIT_GGUF_ELEMENTS (1u << 24)       /* elements of all arrays of a GGUF file */
#define MT_LIMIT_GGUF_SPLITS (1u << 30)         /* squares of the lengths of all pieces whose merges are derived */
#define MT_LIMIT_GGUF_ALIGNMENT (1u << 20)      /* bytes that its tensors are aligned to */
#define MT_LIMIT_MAPPINGS (4 * MT_LIMIT_SHARDS) /* mapped files that are guarded against being shortened */

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
#define MT_LIMIT_ENCODER_CONTEXT (1u << 16) /* positions of an encoder, which reads a whole text at once */

/* tokenizers */
#define MT_LIMIT_TOKENIZER_BYTES (256u << 20)   /* a tokenizer.json */
#define MT_LIMIT_TOKENIZER_SETTINGS (64u << 20) /* bytes in memory besides vocabulary and merges */
#define MT_LIMIT_TOKENIZER_STAGES 64            /* of a normalizer or pre-tokenizer */
#define MT_LIMIT_TOKENIZER_AROUND 64            /* tokens put before or after a text */
#define MT_LIMIT_TOKENIZER_TEXT (1u << 30)      /* bytes that a text may grow to while it is normalised */
#define MT_LIMIT_TOKENIZER_GROWTH 32            /* times as long as it was, for a text that is normalised or decoded */
#define MT_LIMIT_TRIE_NODES (8u << 20)          /* of the tree of added tokens, or of a Unigram model's tokens */
#define MT_LIMIT_TOKEN_BYTES 65536              /* bytes of a token's spelling */
#define MT_LIMIT_TOKEN_AFFIX 64                 /* bytes of the mark at the start or end of a word */
#define MT_LIMIT_DECODER_STEPS 8                /* of each kind */
#define MT_LIMIT_REGEX 16384                    /* bytes of a regular expression */
#define MT_LIMIT_REGEX_STACK (64u << 20)        /* memory of a match */
#define MT_LIMIT_ENCODE_BYTES (64u << 20)       /* a text to tokenize */
#define MT_LIMIT_STOP_STRINGS 32
#define MT_LIMIT_STOP_BYTES 1024 /* of each stop string */

/* HTTP, unless options say otherwise. */
#define MT_LIMIT_HTTP_CONNECTIONS 4096            /* of one address; a third more are for others */
#define MT_LIMIT_HTTP_SPARE 32                    /* beyond these, for routes that are always answered */
#define MT_LIMIT_HTTP_HEAD_BYTES 32768            /* request line and headers */
#define MT_LIMIT_HTTP_HEADERS 100                 /* of a request */
#define MT_LIMIT_HTTP_BODY_BYTES (128u << 20)     /* of a request */
#define MT_LIMIT_HTTP_BODIES_BYTES (1u << 30)     /* of all bodies being read */
#define MT_LIMIT_HTTP_PIPELINE_BYTES (256u << 10) /* read ahead of the request being answered */
#define MT_LIMIT_HTTP_OUTPUT_PAUSE (256u << 10)   /* bytes waiting for a client at which its producer pauses */
#define MT_LIMIT_HTTP_OUTPUT_DROP (16u << 20)     /* bytes waiting for a client at which it is dropped */
#define MT_LIMIT_HTTP_IDLE_MS 75000               /* between requests */
#define MT_LIMIT_HTTP_HEAD_MS 20000               /* for a client to send a head */
#define MT_LIMIT_HTTP_BODY_MS 300000              /* for a client to send a body */
#define MT_LIMIT_HTTP_SEND_MS 60000               /* without the client reading a byte of its answer */
#define MT_LIMIT_HTTP_LINGER_MS 2000              /* for the client to close after us */
#define MT_LIMIT_HTTP_SOCKET_MS 3600000           /* a WebSocket's, from its handshake to its end */

/* HTTP, always. */
#define MT_LIMIT_HTTP_CHUNK_EXTENSIONS 1024  /* bytes of all extensions of a body's chunks */
#define MT_LIMIT_WARNINGS 4096               /* bytes of an answer's warnings */
#define MT_LIMIT_HTTP_EXTRA 8                /* headers that a hook may add to an answer */
#define MT_LIMIT_TIMEOUT_SECONDS (7 * 86400) /* longest "timeout" of a request */
#define MT_LIMIT_TIMEOUT_MS 50               /* between checks of deadlines */
#define MT_LIMIT_HTTP_NAME 128               /* bytes of a client's name for a request */
#define MT_LIMIT_HTTP_HOST 255               /* bytes of the name in a host header */
#define MT_LIMIT_HTTP_PARAMS 4               /* of a path pattern */
#define MT_LIMIT_HTTP_NEAREST 63             /* bytes of an unknown path for which a similar one is looked for */
#define MT_LIMIT_HTTP_TURN 32                /* requests of one connection before others have their turn */
#define MT_LIMIT_HTTP_ERROR_BYTES 65536      /* body of an error */
#define MT_LIMIT_HTTP_SOCKETS 8              /* addresses of a host that are listened on */
#define MT_LIMIT_HTTP_PROXIES 64             /* addresses and networks of trusted proxies */

/* Media, unless options say otherwise. */
#define MT_LIMIT_MEDIA_BYTES (64u << 20)        /* of a picture or video as received */
#define MT_LIMIT_MEDIA_PIXELS (64u << 20)       /* of a picture */
#define MT_LIMIT_MEDIA_VIDEO_PIXELS (16u << 20) /* of a frame of a video; 4K has half of that */
#define MT_LIMIT_MEDIA_FRAMES 36000             /* of a video: 20 minutes at 30 a second */
#define MT_LIMIT_MEDIA_SECONDS 3600             /* of a video */
#define MT_LIMIT_MEDIA_FETCH_MS 20000           /* for a URL, its redirects included */

/* Media, always. */
#define MT_LIMIT_MEDIA_SIDE 65535              /* pixels of a side */
#define MT_LIMIT_MEDIA_SCANS 100               /* of a progressive JPEG; encoders write about ten */
#define MT_LIMIT_MEDIA_PASSES 16               /* scans of a JPEG with the most pixels; smaller ones may have more */
#define MT_LIMIT_MEDIA_STREAMS 64              /* of a video's file */
#define MT_LIMIT_MEDIA_SAMPLES (4 << 20)       /* samples that an MP4 lists, sound included */
#define MT_LIMIT_MEDIA_VIDEO_WORK (1ull << 37) /* pixels of all frames: an hour of 720p, ten minutes of 4K */
/* Pixels of all pictures of a request, each as often as its scans go through it: half a minute */
#define MT_LIMIT_MEDIA_PICTURES_WORK (1ull << 32)
#define MT_LIMIT_MEDIA_LONG (1ull << 26) /* pixels to decode (media/cost.h) above which decoding is long work */
#define MT_LIMIT_MEDIA_IMAGE_SECONDS 20  /* processor seconds for a picture; a large one takes one or two */
#define MT_LIMIT_DARK_SECONDS 900        /* processor seconds for all pictures and videos of a request */
#define MT_LIMIT_DARK_AGAIN_US 100000    /* microseconds before a process that could not be started is tried again */
#define MT_LIMIT_DARK_TAKES 10000        /* how often a picture or a frame may ask for memory */
#define MT_LIMIT_DARK_IMAGE_MS 600000    /* for one picture by the clock, after which a process that sleeps is ended */
/* Bytes of a decoding process beyond what it asked for: code, input, results */
#define MT_LIMIT_DARK_SLACK (512ul << 20)
#define MT_LIMIT_MEDIA_URL 4096    /* bytes of a URL that is fetched */
#define MT_LIMIT_MEDIA_REDIRECTS 5 /* followed */

/* files that clients upload to make models of */
#define MT_LIMIT_UPLOADS 1024              /* that are kept */
#define MT_LIMIT_UPLOAD_BYTES (1ull << 40) /* of each */
#define MT_LIMIT_UPLOAD_AGE_S 86400        /* seconds that one is kept of which no model is made */
#define MT_LIMIT_UPLOADING 4               /* that come at a time */
#define MT_LIMIT_UPLOAD_AHEAD (4u << 20)   /* bytes of one that wait to be written; beyond, nothing more is read */
#define MT_LIMIT_UPLOAD_FILES 256          /* of which a model is made */

/* names */
#define MT_LIMIT_HUB_NAME 256                  /* bytes of a model's name, of a revision, NUL included */
#define MT_LIMIT_LOCAL_MODELS 4096             /* that are listed */
#define MT_LIMIT_LOCAL_FILES 100000            /* files of a model that are examined */
#define MT_LIMIT_PULL_ANSWER (32u << 20)       /* bytes of a hub's list of files */
#define MT_LIMIT_PULL_FILES 4096               /* files of a model that are downloaded */
#define MT_LIMIT_PULL_FILE_BYTES (1ll << 50)   /* of each */
#define MT_LIMIT_PULL_SMALL_BYTES (256u << 20) /* of each file that is no weights, such as tokenizer.json */
#define MT_LIMIT_PULL_AT_ONCE 32               /* files downloaded side by side */
#define MT_LIMIT_PULL_REDIRECTS 5              /* followed */
#define MT_LIMIT_PULL_URL 16384                /* bytes of a URL; those of other hosts are signed and long */
#define MT_LIMIT_PULL_TRIES 4                  /* attempts of a request without success, each after a longer pause */
#define MT_LIMIT_PULL_FILE_TRIES 7             /* the same for a request for a file */
#define MT_LIMIT_PULL_WAIT_S 120               /* longest time that a hub may ask to wait; more is an error */
#define MT_LIMIT_PULL_STALL_MS 30000           /* without a byte, after which a transfer counts as broken */

/* compute */
#define MT_LIMIT_PATCHES 65536 /* of a picture or a video: 16 million pixels, 14 or 16 to a side */
#define MT_LIMIT_THREADS 256
#define MT_LIMIT_BATCH_ROWS 8192 /* rows of one step */
#define MT_LIMIT_SEQUENCES 1024  /* sequences of one step */
#define MT_LIMIT_TOP_LOGPROBS 20
#define MT_LIMIT_MEMOS 16         /* sequences with a recurrent state that may guess ahead at a time */
#define MT_LIMIT_MEMO_ROWS 4      /* tokens that each of these may guess */
#define MT_LIMIT_DRAFT 8          /* tokens guessed ahead in a step */
#define MT_LIMIT_LOGIT_BIAS 1024  /* entries of a request's logit_bias */
#define MT_LIMIT_REPEAT_PERIOD 64 /* tokens of the longest repeated part for which an answer is ended */
#define MT_LIMIT_STOP_IDS 256     /* stop token ids of a request */
#define MT_LIMIT_BAD_WORDS 256    /* bad_words of a request */
#define MT_LIMIT_BAD_TOKENS 64    /* tokens of a bad word */

/* constraints */
#define MT_LIMIT_GRAMMAR_NODES (1u << 20)     /* expressions of a grammar */
#define MT_LIMIT_GRAMMAR_BYTES (32u << 20)    /* bytes of the texts in a grammar */
#define MT_LIMIT_GRAMMAR_TEXT (8u << 20)      /* bytes of a grammar in GBNF */
#define MT_LIMIT_PROGRAM_CODE (1u << 20)      /* instructions that a grammar is compiled to */
#define MT_LIMIT_GRAMMAR_NESTING 100          /* brackets in a regular expression or in GBNF */
#define MT_LIMIT_GRAMMAR_MARKER 64            /* bytes of a marker that is looked for */
#define MT_LIMIT_GRAMMAR_SEARCH 8192          /* bytes of all markers that are looked for at once */
#define MT_LIMIT_GRAMMAR_FRAMES 256           /* nesting of rules; JSON takes three or four for each level */
#define MT_LIMIT_GRAMMAR_EMPTY_REPEAT 32      /* rounds of a repetition of something that may be empty */
#define MT_LIMIT_AUTOMATON_STATES 4096        /* states of a constraint that are kept at once */
#define MT_LIMIT_AUTOMATON_STACKS (1u << 14)  /* frames of all these states */
#define MT_LIMIT_AUTOMATON_PLACES (1u << 16)  /* places of one state */
#define MT_LIMIT_CONSTRAINT_RUNS 8192         /* answers that follow one constraint at a time */
#define MT_LIMIT_CONSTRAINTS 64               /* constraints that are kept after their last request */
#define MT_LIMIT_CONSTRAINT_MASKS (32u << 20) /* bytes of the masks that are kept */
#define MT_LIMIT_CONSTRAINT_BYTES (1u << 28)  /* of masks, the vocabulary's index and all compiled constraints */
#define MT_LIMIT_CONSTRAINT_SHARE 16          /* these bytes are at most this fraction of --memory */
#define MT_LIMIT_CONSTRAINT_ONE (32u << 20)   /* bytes of the largest constraint that is compiled */
#define MT_LIMIT_CONSTRAINT_MS 2000           /* milliseconds of processor time for compiling one */
#define MT_LIMIT_SHAPE_CALLS 32               /* calls of an answer that must have calls */
#define MT_LIMIT_CHOICE_LIST (1u << 20)       /* texts of a "choice" constraint */
#define MT_LIMIT_REGEX_NODES 4096             /* nodes of regular expressions that have to match together */
#define MT_LIMIT_REGEX_CATEGORIES 8           /* Unicode categories in a regular expression */
#define MT_LIMIT_REGEX_WORK (4u << 20) /* nodes and formulas visited to make the automaton of a regular expression */
#define MT_LIMIT_REGEX_WORK_ALL (12u << 20) /* the same for all of a constraint: about half a second */
#define MT_LIMIT_SCHEMA_PATTERNS 256        /* regular expressions of a schema */
#define MT_LIMIT_SCHEMA_MEMBERS 200000      /* properties in all places of a schema */
#define MT_LIMIT_AUTOMATON_WORK (1u << 20)  /* places visited to make one mask: about 40 ms */
#define MT_LIMIT_REGEX_STATES 16384         /* states of the automaton of regular expressions */
#define MT_LIMIT_SCHEMA_RULES (1u << 16)    /* different places of a schema */
#define MT_LIMIT_SCHEMA_COMBINED 4096       /* of these, places to which several of its schemas apply */
#define MT_LIMIT_SCHEMA_PARTS 128           /* schemas that apply to one place together */
#define MT_LIMIT_SCHEMA_STRINGS 24          /* of these, schemas about strings */
#define MT_LIMIT_SCHEMA_KEY_PATTERNS 24     /* patternProperties of one object */
#define MT_LIMIT_SCHEMA_ONE_OF 512          /* alternatives of a oneOf */
#define MT_LIMIT_SCHEMA_COMPARED (1u << 20) /* pairs of schemas that are compared */
#define MT_LIMIT_SCHEMA_APART (1u << 26)    /* steps to find out whether schemas of a oneOf exclude each other */
#define MT_LIMIT_SCHEMA_JUDGED (1u << 24)   /* steps to find which listed values are valid */
#define MT_LIMIT_SCHEMA_SOUGHT (1u << 24)   /* values looked at to find what references name by $anchor or $id */
#define MT_LIMIT_SCHEMA_PATH 512            /* bytes of a place's name in an error */
#define MT_LIMIT_SCHEMA_PROPERTIES 2048     /* of an object, or schemas in the prefixItems of an array */
#define MT_LIMIT_SCHEMA_COUNTED 20000       /* rules of an object or array: its length times how far it counts */

/* requests */
#define MT_LIMIT_COUNTED 4           /* contexts: a prompt is counted up to so many before it is refused as too long */
#define MT_LIMIT_CHOICES 128         /* answers of one call: prompts times n */
#define MT_LIMIT_EMBEDDINGS 2048     /* texts of one call for embeddings or scores, as OpenAI has it */
#define MT_LIMIT_EMBEDDING_FLIGHT 16 /* of these, texts that the engine has at a time */
#define MT_LIMIT_BODY_BYTES (64u << 20)      /* of a request's body */
#define MT_LIMIT_JSON_LEAST (8u << 20)       /* bytes that a parsed body may have even where memory is short */
#define MT_LIMIT_JSON_MEMORY (256u << 20)    /* bytes of a parsed body */
#define MT_LIMIT_JSON_SURE (1u << 20)        /* bytes of a string in it; the system may refuse longer ones */
#define MT_LIMIT_JSON_TRIM (1u << 20)        /* bytes of a body after which memory is given back to the system */
#define MT_LIMIT_REQUEST_MEMORY (256u << 20) /* bytes of what is prepared from a request */
#define MT_LIMIT_ANSWER_BYTES (64u << 20)    /* text of an answer that is not streamed */
#define MT_LIMIT_RESPONSE_BYTES (256u << 20) /* of an answer with all its logprobs */
#define MT_LIMIT_EOS 32                      /* tokens that end an answer */
#define MT_LIMIT_API_KEYS 1024               /* API keys */
#define MT_LIMIT_KEY_NAME 64                 /* bytes of a key's name, NUL included */
#define MT_LIMIT_PREPARING 256               /* calls that wait for a preparation thread */
#define MT_LIMIT_REQUESTS_BYTES (640u << 20) /* bytes for large requests: enough for one of 64 MiB */
/* Bytes for large requests at least, unless that is more than a share of the memory (engine/memory.c, fleet_room.c) */
#define MT_LIMIT_REQUESTS_LEAST (32u << 20)
#define MT_LIMIT_REQUESTS_ASIDE (4u << 20) /* bytes for small requests that are being read and answered */
#define MT_LIMIT_PREPARE_COST 6            /* bytes that preparing one byte of a body takes at most */
#define MT_LIMIT_TOKEN_COST 24             /* bytes that a token takes which is only counted */
#define MT_LIMIT_SMALL_BODY (256u << 10)   /* bytes; larger bodies are prepared one at a time, in a lane of their own */
#define MT_LIMIT_PREPARING_LARGE 256       /* calls that wait in the lane of large bodies */
/* For compiling a constraint in its own lane; one that takes longer moves to the lane of large bodies */
#define MT_LIMIT_COMPILING_MS 100
#define MT_LIMIT_PREPARING_MEDIA 256     /* calls that wait in the lane of pictures */
#define MT_LIMIT_PREPARING_SPARE 8       /* threads of a lane for clients that would wait behind long work of others */
#define MT_LIMIT_PREPARING_LONG_MS 1000  /* after which preparing a call counts as long work (server/workers.c) */
#define MT_LIMIT_END_MS 3000             /* for threads to end, after the time for answers */
#define MT_LIMIT_CRASH_IDS 4096          /* calls that a crash report names */
#define MT_LIMIT_CRASH_ID 64             /* bytes of each id, NUL included */
#define MT_LIMIT_STEP_NAMED 8            /* answers that the log names for a slow step */
#define MT_LIMIT_STATE_BYTES (16u << 20) /* of what SIGQUIT writes */
#define MT_LIMIT_OUTBOX 256              /* events of a call that may wait for the io thread before it is paused */
#define MT_LIMIT_MEDIA_PARTS 256         /* pictures and videos of a request */
#define MT_LIMIT_MEDIA_LIST 768          /* frames of a video that is sent as a list of pictures */
#define MT_LIMIT_MEDIA_FPS 240           /* frames a second that may be asked for */
/* Bytes of the events of a background answer, for clients that come back to its stream */
#define MT_LIMIT_EVENT_LOG (32u << 20)
#define MT_LIMIT_WATCHERS 16               /* clients that follow one background answer, beside the one that asked */
#define MT_LIMIT_SCORE_NOTES (128u << 10)  /* notes of the dashboard's timeline; fewer with little memory */
#define MT_LIMIT_SCORE_VOICES (8u << 10)   /* answers in the dashboard's timeline that have ended */
#define MT_LIMIT_SCORE_SECONDS 3600        /* seconds of the dashboard's charts */
#define MT_LIMIT_DASHBOARDS 32             /* viewers of the dashboard at a time */
#define MT_LIMIT_PULLS 4                   /* models that are downloaded for clients at a time */
#define MT_LIMIT_PULL_BODY 4096            /* bytes of a request to download a model */
#define MT_LIMIT_DISK_RECORDS (1u << 20)   /* records of the cache on disk */
#define MT_LIMIT_DISK_FILES 256            /* files of the cache on disk, all open; every process begins one */
#define MT_LIMIT_DISK_LEAST (64ul << 20)   /* least bytes of the cache on disk */
#define MT_LIMIT_EVENT_BATCHES 10000       /* batches of KV events that are kept for replay, or wait to be sent */
#define MT_LIMIT_EVENT_BYTES (32u << 20)   /* bytes of each of these */
#define MT_LIMIT_EVENT_BATCH (8u << 20)    /* bytes of one batch */
#define MT_LIMIT_REMOTE_QUEUE (64ul << 20) /* bytes that wait to be sent to a shared store */
#define MT_LIMIT_STORE_QUEUE 4096          /* answers that wait to be written to the store */
#define MT_LIMIT_STORE_BYTES (128ul << 20) /* bytes of all these answers */
#define MT_LIMIT_STORE_CHAIN 1000          /* responses in a chain of previous_response_id */
#define MT_LIMIT_ITEMS_PAGE 100            /* items that are listed at once */
#define MT_LIMIT_ITEMS_PAGE_DEFAULT 20     /* the same where the client does not say */
#define MT_LIMIT_USABLE_CONTEXT 8192 /* tokens for which a model gets memory at least, where there are several models */
#define MT_LIMIT_CREATED 256         /* models that clients have created of others */
#define MT_LIMIT_CREATED_NAME 120    /* bytes of the name of one */
#define MT_LIMIT_CREATED_BYTES 262144   /* bytes of what it has, and of a request to create one */
#define MT_LIMIT_MODELS 1024            /* models that a server knows */
#define MT_LIMIT_LOADING 1024           /* calls that wait for models to be loaded */
#define MT_LIMIT_OPTION_LIST 16         /* how often an option may be given */
#define MT_LIMIT_OPTION_FILE (1u << 20) /* bytes of a config file */
#define MT_LIMIT_WARM_PROMPTS 256       /* prompts of --warm-prompts */
#define MT_LIMIT_WARM_BYTES (16u << 20) /* bytes of their file */

#endif
