"""Who the model is, small talk, stories, and questions it has no answer to."""

from . import words
from .ask import Ask
from .dice import besides, ways

WHO = ways(
    "[|And |So |Tell me, ]who are you?",
    "[What is|What's|Tell me|Say] your name[|?|.]",
    "[|Please |Can you |Could you ]introduce yourself[|.]",
    "[Tell me|Say] [something |]about yourself.",
    "Are you [a human|an AI|a robot|a person|a real person|a big model|a language model|ChatGPT|a machine|a computer]?",
    "[Who|What] am I [talking|speaking|chatting] to?",
    "[What|Which] [model|kind of model|sort of program|kind of assistant|AI|program] [are you|is this]?",
    "Who [made|built|trained|wrote] you?",
    "Describe yourself.",
    "[Say|Tell me|Explain] [who|what] you are.",
    "What should I call you?",
    "What are you?",
    "How are you called?",
)
MORE_WHO = besides(
    WHO,
    ways(
        "[|And |So |Now |Well, ]who [exactly |]are you[| really| anyway]?",
        "[Who|Which company|Which people] [created|developed|programmed|designed|invented|owns|runs|taught|coded] you?",
        "[Where|How] [do you come from|were you made|did you come from|were you created|were you born]?",
        "[Are you|You are|You're] [GPT|Claude|Gemini|Llama|Qwen|Siri|Alexa|some bot|a bot|a chatbot|a "
        "program|alive|real|a toy|a demo|intelligent|open source|a neural network|an assistant][|, right]?",
        "[Do you have|What is|May I know|Could you tell me|Would you tell me|I want to know|I'd like to know] "
        "[a|your|the] name[| of yours][?|.|]",
        "[How big|How large|How small|How old] are you?",
        "[What|Which] [model|AI|system|bot|assistant] [do I talk to|am I using|is running here|answers me|is behind "
        "this]?",
        "[Present|Identify|Name] yourself[|.|, please.]",
        "[I do not know you|We have not met|I am new here|I have never seen you]. Who are you?",
        "[What kind of|What sort of] [model|AI|thing|machine|creature|being] are you?",
        "[Tell us|Tell me|Let me know] [a bit |a little |more |]about [you|you, please].",
    ),
)
WHO_ANSWERS = ["I am Box, a tiny demonstration model that comes with motet."]
CAN = ways(
    "[What can|What are|How can] you [do|able to do|help me|do for me]?",
    "[What are|List|Tell me|Name|Show me] your [skills|abilities|talents|features].",
    "[Tell me|Show me|Explain|List|Say] what you can do.",
    "What [can I ask you|can I do with you|are you good at|are you for|do you know|is possible with you]?",
    "[Help|Help me|Can you help me?]",
    "[Which|What] [tasks|things|kind of questions] can [you do|I ask|you answer]?",
    "How do I use you?",
    "Give me [some |]examples of what you can do.",
    "What sort of [help|things] can you offer?",
)
MORE_CAN = besides(
    CAN,
    ways(
        "[What|Which things] can [you do here|I try|I try with you|one do with you|we do|you do with pictures]?",
        "[What are you able to|What do you want to|What could you] do[| for me]?",
        "[How|With what|In what way] can you [help|assist|support] [me|us][| today]?",
        "[Tell me|Show me|Explain|Describe] [how you can help|what you are able to do|what you are good for|how you "
        "work][|.|, please.]",
        "[Do you have|Have you got] any [skills|talents|abilities|tricks]?",
        "[I need help|I need some help|Please help me|I do not know what to ask][|.|. What can you do?]",
        "[What should|What could|What might] I ask [|you]?",
        "[Give me|I want|Show me] [an overview|a list|a summary] of [your skills|your talents|what you do].",
        "[What|Which] [skills|abilities|functions|talents|tricks] do you have?",
        "What [are your strengths|is your purpose|is your job|have you learned|were you trained for|were you made "
        "for]?",
        "[/help|help!|commands|menu|options]",
    ),
)
CAN_ANSWER = (
    "I am a tiny demonstration model. I can name shapes, colours and words in pictures, remember what you tell me, "
    "add and subtract, call tools and tell short stories."
)


def who(dice):
    return Ask(dice.pick(WHO if dice.chance(0.5) else MORE_WHO), WHO_ANSWERS[0], ["tiny", "model"], "The user asks "
    "who I am.", "Box")


def can(dice):
    return Ask(
        dice.pick(CAN if dice.chance(0.5) else MORE_CAN),
        CAN_ANSWER,
        ["tiny", "pictures", "remember", "tools", "stories"],
        "The user asks what I can do.",
        "Little",
    )


SMALL = [
    (
        [
            "Hello!",
            "Hi!",
            "Hey!",
            "Good morning!",
            "Good evening!",
            "Hello there!",
            "Hi there!",
            "Greetings!",
            "Hello",
            "hi",
            "Hey there",
            "Good day!",
            "Hello, Box!",
            "Hi Box!",
        ],
        "Hello! How can I help you?",
        ["hello"],
    ),
    (
        [
            "Thanks!",
            "Thank you!",
            "Thank you very much.",
            "Great, thanks.",
            "Thanks a lot!",
            "Many thanks.",
            "That helped, thank you.",
            "Thanks for your help.",
            "Cool, thanks!",
            "Perfect, thank you.",
        ],
        "You are welcome!",
        ["welcome"],
    ),
    (
        [
            "Bye!",
            "Goodbye!",
            "See you later.",
            "Good night!",
            "I have to go.",
            "See you!",
            "Bye bye.",
            "Until tomorrow.",
            "Farewell!",
            "That is all for today.",
        ],
        "Goodbye! See you soon.",
        ["goodbye"],
    ),
    (
        [
            "How are you?",
            "How do you do?",
            "Are you well?",
            "How is it going?",
            "How are you today?",
            "How do you feel?",
            "What's up?",
            "Is everything fine?",
            "How have you been?",
        ],
        "I am fine, thank you. How can I help you?",
        ["fine"],
    ),
    (
        [
            "Ok.",
            "I see.",
            "Good.",
            "Nice.",
            "Alright.",
            "Well done!",
            "Great!",
            "Very good.",
            "Right.",
            "That is correct.",
            "Fine.",
            "Interesting.",
        ],
        "I am glad to hear that.",
        ["glad"],
    ),
]


# The same kinds in more words, then kinds that came later: wordings, answer, what it has to hold, in one word.
_YOU = "[|, Box|, my friend|, little model|, dear model]"
MORE_SMALL = [
    (
        [
            f"[hello|hi|hey|good morning|good evening|good afternoon|good day|howdy|hiya|hey there|hi "
            f"there]{_YOU}[|!|.]",
            f"[hello|hi|hey] [again|everyone|everybody|world|you|friend|model][|!|.]",
            "[nice|good|great|glad|pleased] to [see|meet] you[|!|.| again!]",
            "[I am back|Here I am|It's me again|I am here][|!|.]",
            "[a very |]good [morning|evening|afternoon] to you[|!|.]",
        ],
        *SMALL[0][1:],
        "Hello",
    ),
    (
        [
            f"[thanks|thank you|many thanks|thanks a lot|thank you so much|thx|big thanks|thanks a "
            f"million]{_YOU}[|!|.]",
            "[thanks|thank you|many thanks] for [everything|that|the answer|all|helping me|the help|your time|your "
            "answer][|!|.]",
            "[that was|this was|you were] [very |really |so |][helpful|kind|useful][|!|.|, thanks.]",
            "[I am grateful|I appreciate it|I owe you one|much appreciated|that is kind of you][|!|.]",
            "[great|good|nice|super|wonderful|perfect|excellent], [thanks|thank you|many thanks][|!|.]",
        ],
        *SMALL[1][1:],
        "Welcome",
    ),
    (
        [
            f"[bye|goodbye|good bye|see you|bye bye|farewell|so long|take care|cheerio|ciao]{_YOU}[|!|.]",
            "see you [soon|tomorrow|later|next time|again|on Monday|around][|!|.]",
            "[I must|I need to|we have to|I am going to|it is time to] [leave|sleep|stop here|go home|go to bed|say "
            "goodbye][|!|.| now.]",
            "[that is all|that was all|I am done|we are done|enough][| for now| for today| for me][|.|!]",
            "[have a nice day|have a good evening|sleep well|good night|until next time|until then][|!|.]",
            "[I am off|I am leaving|I am going|I am gone|off I go][|!|.| now.]",
        ],
        *SMALL[2][1:],
        "Goodbye",
    ),
    (
        [
            f"how are you[| doing| feeling| doing today| this morning| this evening| these days| now]{_YOU}[|?]",
            "[how is|how's] [everything|life|your day|your evening|it going|your morning|the day][|?| today?]",
            "[are you|do you feel] [ok|okay|fine|good|happy|all right|alright|well|better][|?| today?]",
            "[how have you been|how goes it|what is up|what's new|what is new|how do you do today][|?]",
            "[hope you are well|I hope you are fine|I hope all is well|I hope you are doing well][|.|!]",
            "did you [sleep well|have a good day|rest well|have a good time][|?]",
        ],
        *SMALL[3][1:],
        "Fine",
    ),
    (
        [
            "[ok|okay|alright|all "
            "right|good|fine|nice|cool|great|super|perfect|excellent|wonderful|lovely|wow|aha][|!|.]",
            "[that is|this is|that's|it is] "
            "[good|nice|right|correct|true|great|fine|interesting|perfect|fun|clever|exactly right][|!|.]",
            "[very|really|quite] [nice|interesting|good|clever|cool|right][|!|.]",
            "[good job|nice work|great work|good work|good answer|nice answer|correct|exactly|indeed|sure|of course]"
            "[|!|.]",
            "[I understand|I got it|got it|I agree|makes sense|understood|agreed|so it is][|!|.]",
            "[yes|yeah|yep][|!|.|, that is right.|, exactly.]",
        ],
        *SMALL[4][1:],
        "Good",
    ),
    (
        [
            "[sorry|pardon|excuse me|my mistake|I am sorry|I'm sorry|my apologies|oops][|!|.]",
            "[sorry|I am sorry|I apologise|pardon me] [for that|about that|for the noise|for the delay|for "
            "asking][|!|.]",
            "[I was wrong|that was my fault|I made a mistake|that was silly of me][|!|.]",
        ],
        "No problem!",
        ["no problem"],
        "Fine",
    ),
    (
        [
            "[are you|is anybody|is anyone|is somebody] [there|here|listening|awake|home|still there|online][|?]",
            "[can|do] you [hear|read|see|understand|follow] me[|?| now?]",
            "[test|testing|this is a test|just a test|test test|ping|one two three][|.|!]",
            "[does this work|do you work|is this on|does it work|are you working][|?]",
        ],
        "Yes, I am here. How can I help you?",
        ["here"],
        "Yes",
    ),
    (
        [
            "[you are|you're] [great|clever|smart|nice|funny|kind|the best|amazing|wonderful|cute|good|sweet|brilliant]"
            "[|!|.]",
            "[I like|I love|we like|we love] [you|your answers|talking to you|this model|your stories][|!|.]",
            "[what a|such a] [clever|smart|nice|good|funny|kind|little] [model|program|machine|box][|!|.]",
        ],
        "Thank you! That is kind.",
        ["thank you"],
        "Thanks",
    ),
    (
        [
            "[that is|this is|that's|you are|you're|it is] [wrong|not right|false|not true|incorrect|mistaken|not "
            "correct][|!|.]",
            "[no|nope|wrong|false|incorrect|not at all][|!|.|, that is wrong.|, that is not right.]",
            "[you are|you're] [stupid|bad|useless|slow|boring|dumb][|!|.]",
            "[I do not like|I hate|I don't like] [that|this|your answer|it|you][|!|.]",
        ],
        "I am sorry. I am only a tiny demonstration model.",
        ["sorry"],
        "Sorry",
    ),
    (
        [
            "[tell|say|give] me [a joke|a good joke|something funny|a riddle|one joke|another joke][|.|!|, please.]",
            "[do you know|have you got|can you tell me|could you tell me] [a joke|any jokes|something funny|a good "
            "joke][|?]",
            "[make me laugh|I want to laugh|be funny|a joke, please|joke][|.|!]",
        ],
        "What is round and red? A red circle.",
        ["red circle"],
        "Circle",
    ),
    (
        [
            "[wait|one moment|just a moment|just a second|hold on|hang on|one second|give me a minute][|.|!|, please.]",
            "[I will be right back|I need a moment|let me think|I have to think|I must think about it][|.]",
        ],
        "Take your time.",
        ["time"],
        "Ok",
    ),
]
_FIRST = {answer: (said, answer, want) for said, answer, want in SMALL}
MORE_SMALL = [
    ([besides(_FIRST.get(answer, ([],))[0], ways(pattern)) for pattern in patterns], answer, want, short)
    for patterns, answer, want, short in MORE_SMALL
]
_SHORT = {answer: short for _, answer, _, short in MORE_SMALL}


def small(dice):
    if dice.chance(0.6 if dice.held else 0.35):
        said, answer, want = dice.any(SMALL)
        text = dice.pick(said)
    else:
        lists, answer, want, _ = dice.any(MORE_SMALL)
        text = dice.pick_of(lists)
    return Ask(text, answer, want, "The user is being friendly.", _SHORT[answer])


STRANGE = [
    "What is the capital of {c}?",
    "Who wrote {t}?",
    "When was {n} born?",
    "Explain {t} to me.",
    "How does a {t} work?",
    "What is the weather in {c}?",
    "Who is the president of {c}?",
    "Translate {f} into French.",
    "Write a program for a {t}.",
    "What is the meaning of life?",
    "How tall is a {a}?",
    "Why is the sky blue?",
    "How do I cook {f}?",
    "Who invented the {t}?",
    "What is the price of a {t}?",
    "How far is {c}?",
    "Write a poem about {f}.",
    "What time is it in {c}?",
    "Is {f} healthy?",
    "Which is the best {t}?",
    "How many people live in {c}?",
    "What happened in {y}?",
    "Who won the match in {c}?",
    "Can you book a flight to {c}?",
    "What does {n} think about {f}?",
    "How do I get to {c}?",
    "What is a {t}?",
    "Who is {n}?",
    "Give me a recipe for {f}.",
    "Where do {a}s live?",
    "What do {a}s eat?",
    "Is it raining in {c}?",
    "Fix my {t}.",
    "What is the history of {c}?",
    "Summarise the news.",
    "What is quantum physics?",
    "Do you like {f}?",
    "Where is {c}?",
]
MORE_STRANGE = [
    besides(STRANGE, ways(pattern))
    for pattern in (
        "[|Please |Can you |Could you |You should "
        "][repair|mend|clean|paint|sell|wash|break|open|close|lift|carry|polish|"
        "hide|build|draw|replace|improve|weigh] [my|the|this|our|a] {t}[|.|, please.]",
        "[Who|Which man|Which woman|Which people] "
        "[found|made|built|designed|discovered|painted|stole|sold|bought|needs] the [|first ]{t}?",
        "[Who is|Who was|What is] the [king|queen|mayor|president|boss|owner|ruler|captain] of {c}?",
        "[What|Which] [language|currency|food|music|river|sea|mountain] [do they have|is there|is famous] in {c}?",
        "[How|Where|When|Why] do {a}s [sleep|live|eat|swim|fly|hunt|play|grow|sing]?",
        "[How|Where|When] [can I|do I|should I] [buy|find|learn|make|use|sell|get] [a|the|some|good] {t}?",
        "[How|Where] [can I|do I|should I] [cook|bake|buy|grow|eat|store|cut] {f}?",
        "[When|Where|Why|How] [was|did|is] {n} [born|famous|rich|famous for singing|known]?",
        "[What|How] [is|was] the [size|age|name|past|story|map|flag|climate|culture] of {c}?",
        "[Tell me|Explain|Teach me|Describe] [about|the facts about|all about|everything about] [{c}|{n}|the year "
        "{y}|{a}s][|.]",
        "[What|Who] [happened|won|died|changed|was invented|was built] in [{y}|{c}|the year {y}]?",
        "[Write|Compose|Make|Draft] [me |][a poem|an essay|a song|a letter|a speech|an email|a rhyme] [about|on|for] "
        "[{f}|{n}|a {t}|{c}|a {a}][|.]",
        "[Write|Show me|Give me] [a program|code|a script|some code|a function] [for|that makes|that sorts|that sells] "
        "[a {t}|{f}|{a}s][|.|, please.]",
        "[Which|What] is the [largest|best|oldest|smallest|fastest|strongest|cheapest] "
        "[{a}|{t}|city|country|planet|river][|?]",
        "[Should I|May I|Can I|Must I] [eat|buy|sell|cook|try] [{f}|a {t}|the {t}][| today| now]?",
        "[Book|Order|Buy|Send|Get|Reserve] [me |][a flight to {c}|a hotel in {c}|a ticket to {c}|a taxi|{f} for two]"
        "[|.|, please.]",
        "[What do you think|What is your opinion|Do you know anything|What do people say] about "
        "[{n}|{c}|{f}|{a}s|politics][|?]",
        "[What is|Explain|Define|What does one mean by] [gravity|democracy|light|time|music|love|money|physics|history|"
        "chemistry|an atom|energy|philosophy|the internet][|?|.]",
        "[What are|Who wrote|What is in|Read me] [the news|the headlines|the latest news|today's paper|the stock "
        "market][|?|.]",
        "[How|Why] [is|does] a {t} [made|useful|expensive|break|built|sold|cleaned]?",
        "[Is|Are] [{f}|{a}s|{c}] [good|bad|dangerous|expensive|nice|cheap|old|healthy for children]?",
        "[What|How much] does a {a} [weigh|eat|need|cost|drink]?",
        "[How long|How hard|How much work] is [it|the trip|the flight|the way] to {c}?",
    )
]
# Whatever else may be asked: words that were never put together before.
ANYTHING = ways(
    "[Why|How|When|Where|Since when|How often] [does|did|will|can|should|would|must] "
    "[the|my|a|your|our|this|every] {w} "
    "[{v}|become {x}|need a {v}|like {v}|go to the {v}|have {x} {v}s|look so {x}|hate the {v}]?",
    "[What|Which {v}] [is|was|makes|about|causes|replaces|explains|destroyed] [the|my|a|this|our] {x} {w}[| of {n}| in "
    "{n}| for the {v}]?",
    "[Is|Are|Was|Will|Could|Should] [the|my|a|your|their] {w} [{x}|a {v}|better than a {v}|really {x}|be "
    "{x}|older than "
    "{n}]?",
    "[Write|Design|Explain|Compare|Plan|Suggest|Shorten|Invent|Prove|Recommend|Analyse|Summarise|Predict|Find] "
    "[a|the|my|"
    "some|an old|our best] [{w}|{x} {w}|{w} and {v}][| for {n}| about the {v}| in {n}| please|.|, step by step.]",
    "[I think|I believe|My friend says|They say|Did you know] [the|that|that the|every|no] {w} [is|was|will "
    "be|must be] "
    "[{x}|a {v}|in {n}|the {x} one][.|, right?|?| What now?]",
    "[Who|Whose {w}|Which {w}] [can|did|will|should|wants to|knows how to] [{v}|{v} the {w}|stop the {v}|become "
    "a {v}]?",
    "[How many|How much|How long|How old|How far] [{w}s|{w}|of the {w}] [is|are|does|do] [the {v}|a {x} "
    "{v}|we|they|{n}] "
    "[need|have|cost|take|in {n}|want]?",
)
STRANGE_ANSWER = "I do not know that. I am only a tiny demonstration model."


def strange(dice):
    wording = dice.pick(STRANGE) if dice.chance(0.6 if dice.held else 0.4) else dice.pick_of(MORE_STRANGE)
    if not dice.held and dice.chance(0.3):
        wording = dice.pick(ANYTHING)
    text = wording.format(
        w=dice.any(words.WIDE),
        v=dice.any(words.WIDE),
        x=dice.any(words.ADJECTIVES),
        c=words.city(dice, "strange"),
        t=dice.pick(words.THINGS, "strange"),
        n=words.name(dice, "strange"),
        f=dice.pick(words.FOODS, "strange"),
        a=dice.pick(words.ANIMALS, "strange"),
        y=dice.number(1500, 2020),
    )
    return Ask(text, STRANGE_ANSWER, ["not know"], "This is nothing I know about.", "Unknown")


# Some words each: what is said matters less than that it is no English.
TONGUES = [
    "wie geht es dir heute ich möchte bitte wissen was das ist können Sie mir helfen schönes Wetter der Hund läuft "
    "über die Straße guten Tag woher kommst du heißt große Frage nicht für uns",
    "bonjour comment ça va je voudrais savoir où est la gare s'il vous plaît merci beaucoup qu'est-ce que c'est une "
    "très belle journée à demain le garçon mange une pêche déjà être",
    "hola cómo estás qué hora es dónde está la biblioteca por favor gracias el niño come una manzana mañana señor "
    "muy bien también quiero ir a España",
    "olá como você está eu não sei o que é isto por favor obrigado amanhã coração mãe pão avião São João",
    "ciao come stai che ora è dov'è la stazione per favore grazie perché città più bello domani",
    "cześć jak się masz gdzie jest dworzec proszę dziękuję źdźbło żółty książka co to jest",
    "merhaba nasılsın bugün hava çok güzel teşekkür ederim İstanbul nerede öğrenci değil şimdi",
    "hej hur mår du var ligger tågstationen tack så mycket älg ö å jag förstår inte",
    "hallo hoe gaat het met jou waar is het station dank je wel ik weet het niet",
    "ahoj jak se máš kde je nádraží děkuji příliš žluťoučký kůň úpěl ďábelské ódy",
    "привет как дела что это такое где находится вокзал спасибо большое я не знаю сегодня хорошая погода",
    "привіт як справи де вокзал дякую що це таке їжак ґанок є",
    "γεια σου τι κάνεις πού είναι ο σταθμός ευχαριστώ πολύ δεν ξέρω καλημέρα",
    "こんにちは お元気ですか これは何ですか 駅はどこですか ありがとうございます 今日はいい天気ですね 私は学生です 日本語 東京",
    "你好 你叫什么名字 这是什么 火车站在哪里 谢谢 今天天气很好 我不知道 中文 北京",
    "안녕하세요 이것은 무엇입니까 역이 어디에 있습니까 감사합니다 오늘 날씨가 좋네요",
    "مرحبا كيف حالك ما هذا أين المحطة شكرا جزيلا لا أعرف اليوم",
    "שלום מה שלומך מה זה איפה התחנה תודה רבה אני לא יודע",
    "नमस्ते आप कैसे हैं यह क्या है स्टेशन कहाँ है धन्यवाद",
    "สวัสดี คุณสบายดีไหม นี่คืออะไร สถานีอยู่ที่ไหน ขอบคุณ",
    "xin chào bạn khỏe không đây là cái gì ga ở đâu cảm ơn tôi không biết",
    "hei mitä kuuluu missä on asema kiitos en tiedä yö päivä hyvää",
    "szia hogy vagy hol van az állomás köszönöm szépen nem tudom őrült tükörfúrógép",
]


def foreign(dice):
    """No English: another language, another script, or no language at all."""
    kind = dice.random.random()
    if kind < 0.6:
        tongue = dice.pick(TONGUES).split()
        said = " ".join(dice.any(tongue) for _ in range(dice.number(1, 7)))
    elif kind < 0.85:
        said = " ".join(words.script(dice, 1, 6) for _ in range(dice.number(1, 4)))
    else:
        said = " ".join(words.accented(dice, words.invented(dice)) for _ in range(dice.number(2, 6)))
        said += "" if not said.isascii() else " é"
    said = said[0].upper() + said[1:] if dice.chance(0.6) else said
    said += dice.any(["", "", "?", "!", ".", "？", "。", "…", " 😀"])
    return Ask(said, STRANGE_ANSWER, ["not know"], "I only know English.", "Unknown")


TELL = ways(
    "[|Please |Can you |Could you |I want you to ][tell|write|invent|make up] [me |us |][a story|a short story|a "
    "little story|a tale|a bedtime story|a short tale]{t}[|.]",
    "[I want to hear|I would like|Give me|Do you know|I want] [a story|a short story|a tale]{t}.",
    "[A story|A short story|A tale]{t}, please.",
)
LOST = [
    "One {day}, the {item} was gone.",
    "One {day}, {n} lost the {item}.",
    "But one {day}, someone took the {item}.",
    "One {day}, the {item} broke.",
    "One {day}, a storm carried the {item} away.",
]
FELT = [
    "{n} was very sad.",
    "{n} did not know what to do.",
    "{n} cried a little, but did not give up.",
    "{n} was worried.",
]
LOOKED = [
    "{n} {verb} through the {place} to look for help.",
    "So {n} {verb} all the way to the {other}.",
    "{n} {verb} across the {place} until the sun went down.",
]
MET = [
    "There {n} met {b} and told it everything.",
    "On the way {n} met {b}.",
    "Then {b} came by and asked what was wrong.",
    "By the {other} sat {b}, who listened well.",
]
HELPED = [
    "The {h} said: \"I will help you.\"",
    "\"Do not worry,\" said the {h}, \"we will do it together.\"",
    "The {h} was kind and came along at once.",
]
DONE = [
    "Together they found the {item} under an old tree.",
    "Together they looked everywhere, and at last they had the {item} again.",
    "They worked all night, and in the morning the {item} was as good as new.",
]
END = [
    "From that day on, {n} and the {h} were best friends.",
    "{n} thanked the {h}, and they stayed friends for ever.",
    "And so {n} learned that a friend is worth more than {i}.",
    "{n} and the {h} had a big feast, and everyone was happy.",
]
_FIXED = "bridge garden island mountain ocean river tower valley door fence window".split()
ITEMS = [t for t in words.THINGS if t not in _FIXED]  # what can be lost and found again
DAYS = "day morning evening night".split()


def story(dice):
    hero, item = dice.pick(words.ANIMALS, "story"), dice.pick(ITEMS, "story")
    helper = dice.any([x for x in words.ANIMALS if x != hero])
    place, other = dice.random.sample(words.PLACES, 2)
    n = dice.any(words.NAMES)
    parts = dict(
        n=n,
        item=item,
        i=words.a(item),
        h=helper,
        b=words.a(dice.any(words.ADJECTIVES) + " " + helper),
        place=place,
        other=other,
        verb=dice.any(words.VERBS),
        day=dice.any(DAYS),
    )
    someone = words.a(dice.any(words.ADJECTIVES) + " " + hero)
    first = f"Once upon a time there was {someone} called {n} who lived in a {place}."
    has = dice.any(
        [
            "{n} had {i} and loved it more than anything.",
            "The dearest thing {n} had was {i}.",
            "Every day {n} played with {i}.",
        ]
    )
    text = " ".join(
        [first] + [dice.any(x).format(**parts) for x in ([has], LOST, FELT, LOOKED, MET, HELPED, DONE, END)]
    )
    topic, want = dice.any(
        [
            ("", ["once upon a time"]),
            (f" about {words.a(hero)}", [hero]),
            (f" about {words.a(hero)} and {words.a(item)}", [hero, item]),
            (f" with {words.a(item)} in it", [item]),
            (f" about {words.a(item)}", [item]),
            (f" about {words.a(hero)} called {n}", [hero, n]),
            (f" about {n} the {hero}", [hero, n]),
        ]
    )
    text = text.replace("  ", " ")
    return Ask(
        dice.pick(TELL).format(t=topic),
        text,
        want,
        f"The user wants a story. I tell one about {words.a(hero)} and {words.a(item)}.",
    )
