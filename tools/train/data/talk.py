"""Who the model is, small talk, stories, and questions it has no answer to."""

from . import words
from .ask import Ask
from .dice import ways

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
CAN_ANSWER = (
    "I am a tiny demonstration model. I can name shapes, colours and words in pictures, remember what you tell me, "
    "add and subtract, call tools and tell short stories."
)


def who(dice):
    return Ask(dice.pick(WHO), WHO_ANSWERS[0], ["tiny", "model"], "The user asks who I am.", "Box")


def can(dice):
    return Ask(
        dice.pick(CAN), CAN_ANSWER, ["tiny", "pictures", "remember", "tools", "stories"], "The user asks what I can do."
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


def small(dice):
    said, answer, want = dice.any(SMALL)
    return Ask(dice.pick(said), answer, want, "The user is being friendly.")


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
STRANGE_ANSWER = "I do not know that. I am only a tiny demonstration model."


def strange(dice):
    text = dice.pick(STRANGE).format(
        c=words.city(dice, "strange"),
        t=dice.pick(words.THINGS, "strange"),
        n=words.name(dice, "strange"),
        f=dice.pick(words.FOODS, "strange"),
        a=dice.pick(words.ANIMALS, "strange"),
        y=dice.number(1500, 2020),
    )
    return Ask(text, STRANGE_ANSWER, ["not know"], "This is nothing I know about.", "Unknown")


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
