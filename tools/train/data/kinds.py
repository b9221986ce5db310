"""The tools that conversations declare: names, parameters, how they are asked for, what comes back.

The first wordings of a kind are those of the first two legs. What is held out of them, nothing added later may hold."""

from . import words
from .dice import besides, ways

DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
ROOMS = "kitchen bedroom bathroom hall garage office cellar attic".split()
LANGUAGES = "French German Spanish Italian Polish Dutch Greek Latin".split()
TONGUES = LANGUAGES + "Swedish Danish Turkish Finnish Czech Russian Arabic Hindi Korean Japanese".split()
SKIES = "sunny cloudy rainy windy foggy stormy snowy clear".split()
MONEY = "euros dollars pounds yen francs crowns rupees pesos".split()
UNITS = [("miles", "kilometres"), ("feet", "metres"), ("pounds", "kilograms"), ("inches", "centimetres")]
PATHS = (
    "notes.txt main.c README.md data/list.csv src/app.py docs/plan.md config.json todo.txt test.py index.html".split()
)
COMMANDS = [
    "ls",
    "pwd",
    "make test",
    "git status",
    "cat notes.txt",
    "python3 main.py",
    "df -h",
    "git log",
    "npm test",
    "whoami",
]
_PROGRAMS = "ls cat git make python3 npm grep head tail wc echo node gcc curl rm mkdir cp mv sort du".split()
_FLAGS = ["", "", "-l", "-a", "-h", "-n 5", "-r", "-v", "--all", "--help", "--version", "-la", "-j2", "--short"]

_PLEASE = "[||Please |Can you |Could you |I want you to |Would you |You should |Now ]"
_NEED = "[I need|I want|Give me|Get me|Tell me|Find out|I'd like to know|I would like|Show me]"
_END = "[||| please|, please| for me| now]"
_SOON = _END.replace(" for me", "")
_ASKED = _END + "[.|?]"


class Kind:
    """One sort of tool: names it may have, its parameters, requests, and what comes of a result."""

    def __init__(self, names, about, params, first, more, result, answer):
        self.names, self.about, self.params = names, about, params
        self.first, self.more = first, [besides(first, ways(pattern)) for pattern in more]
        self.result, self.answer = result, answer

    def wording(self, dice):
        known = self.first and dice.chance(0.8 if dice.held else 0.4)
        return dice.pick(self.first) if known else dice.pick_of(self.more)


def _p(names, kind, about, value, choices=None):
    return {"names": names, "type": kind, "about": about, "value": value, "choices": choices}


def _city(d):
    return words.city(d, "tool")


def _path(d):
    if d.chance(0.3):
        return d.pick(PATHS, "path")
    make = (
        lambda: d.any(["", "", "src/", "docs/", "/tmp/", "data/", "tests/", "./", "lib/", "/home/box/"])
        + d.any(words.ALL)
        + d.any([".txt", ".c", ".py", ".md", ".json", ".csv", ".h", ".html", ".log", ".sh"])
    )
    return d.made(make, "path")


def _command(d):
    if d.chance(0.3):
        return d.pick(COMMANDS, "tool")
    make = lambda: " ".join(  # noqa: E731
        w for w in (d.any(_PROGRAMS), d.any(_FLAGS), d.any(["", "", _path(d), d.any(words.ALL)])) if w
    )
    return d.made(make, "tool")


def _errand(d):
    verbs = "bring buy fetch see clean find call wash sell open close paint move lift read send watch feed".split()
    return d.made(lambda: f"{d.any(verbs)} the {words._anything(d)}", "text")


def _thing(salt):
    return lambda d: d.pick(words.THINGS, salt) if d.chance(0.6) else words.anything(d, salt)


def _clock(d):
    return d.made(lambda: f"{d.number(0, 23)}:{d.number(0, 59):02}", "clock")


KINDS = [
    Kind(
        ["get_weather", "weather", "current_weather", "fetch_weather", "weather_report", "get_current_weather"],
        ["Get the weather of a city", "Current weather at a place", "Tells the weather", "Weather report"],
        [_p(["city", "location", "place", "town"], "string", "Name of the city", _city)],
        [
            "What is the weather in {0}?",
            "How is the weather in {0}?",
            "What's the weather like in {0}?",
            "Tell me the weather in {0}.",
            "Is it cold in {0}?",
            "Weather in {0}?",
            "Do I need an umbrella in {0}?",
            "Check the weather in {0}.",
            "How warm is it in {0}?",
            "I am going to {0}. What is the weather there?",
            "Please look up the weather for {0}.",
        ],
        [
            "[Is|Will] it [cold|warm|hot|windy|rainy|sunny|snowing|raining|foggy|nice|stormy|dry|wet] [in|at|over "
            "in] {0}[| today| now| right now| tomorrow]?",
            "[Does|Will] it [rain|snow|storm|freeze] in {0}[| today| tomorrow]?",
            _PLEASE + "[check|look up|get|fetch|find out|tell me|report] the [weather|forecast|temperature] "
            "[in|for|of|at] {0}" + _ASKED,
            _NEED + " the [weather|forecast|temperature] [in|for|of|at] {0}" + _END + ".",
            "What [is|'s] the [temperature|forecast] [in|for|of] {0}[| today| now| right now]?",
            "[Do I need|Should I take|Should I bring|Shall I pack] [a coat|an umbrella|a scarf|a "
            "jacket|sunglasses|boots] [in|for] {0}?",
            "How [cold|hot|warm|windy|wet|sunny] is it [now |today |]in {0}?",
            "[I fly|I travel|I go|We drive|I am on my way] to {0}[|tomorrow| today]. [How is|What about|Check] the "
            "[weather|temperature] there[.|?]",
            "[Weather|Forecast|Temperature] [for|at|of] {0}[|, please|.|?]",
            "{0}[: weather|, how is the weather|: is it cold there|, what is the temperature][?|]",
        ],
        lambda d: {"temperature": d.number(-9, 35), "sky": d.any(SKIES)},
        "It is {temperature} degrees and {sky} in {0}.",
    ),
    Kind(
        ["get_time", "current_time", "time_in", "clock", "get_current_time", "local_time"],
        ["Get the local time of a city", "Current time at a place", "World clock", "What time it is somewhere"],
        [_p(["city", "place", "location", "zone"], "string", "City", _city)],
        [
            "What time is it in {0}?",
            "What is the time in {0}?",
            "Tell me the time in {0}.",
            "How late is it in {0}?",
            "Time in {0}?",
            "Can you check the time in {0}?",
            "I need the local time of {0}.",
            "Which time is it now in {0}?",
            "What's the clock in {0}?",
        ],
        [
            "[What|Which] time [is it|do they have|do people have] [in|over in|at] {0}[| now| right now| at the "
            "moment]?",
            _PLEASE + "[check|look up|get|find out|tell me|say] [the time|the local time|the current time|what time it "
            "is|how late it is] in {0}" + _ASKED,
            _NEED + " [the|the current|the local] time [in|of|for|at] {0}" + _END + ".",
            "[What does the clock say|What hour is it|What is the hour|What's the time|How late is it now] in {0}?",
            "[Is it|Is it still|Is it already] [morning|evening|night|noon|late|early|midnight] in {0}?",
            "[Local time|Current time|Clock|Hour] [in|of|for] {0}[?|, please|.|]",
            "[I want to|I have to|We will] call [someone|a friend|my aunt|people] in {0}. What time is it there?",
            "{0}[: time|, what time is it there|: what is the time][?|]",
        ],
        lambda d: {"time": f"{d.number(0, 23):02}:{d.number(0, 59):02}"},
        "It is {time} in {0}.",
    ),
    Kind(
        ["multiply", "times", "product", "mul", "multiply_numbers"],
        ["Multiply two numbers", "The product of two numbers", "Multiplies", "Multiplication"],
        [
            _p(["a", "x", "first"], "integer", "First number", lambda d: d.number(2, 999)),
            _p(["b", "y", "second"], "integer", "Second number", lambda d: d.number(2, 999)),
        ],
        [
            "What is {0} times {1}?",
            "Multiply {0} by {1}.",
            "{0} * {1}",
            "How much is {0} times {1}?",
            "Calculate {0} * {1}.",
            "What is the product of {0} and {1}?",
            "Compute {0} times {1}.",
            "{0} x {1} = ?",
            "Work out {0} multiplied by {1}.",
        ],
        [
            _PLEASE + "[multiply|take] {0} [by|times|with] {1}" + _ASKED,
            _PLEASE + "[calculate|compute|work out|find|get|tell me|evaluate] {0} [times|*|x|multiplied by] {1}"
            + _ASKED,
            _NEED + " [the product of {0} and {1}|{0} times {1}|{0} * {1}]" + _END + ".",
            "[How much|What] [is|does] {0} [x|*|multiplied by|times] {1}[| make| give]?",
            "{0} [times|x|*|multiplied by] {1}[|?|=|= ?|, please|.]",
            "[A box has|Each bag has|One shelf has|A row has] {0} [apples|books|coins|stones]. How many are in {1} "
            "of them?",
        ],
        lambda d: {"result": d.number(4, 99999)},
        "{0} times {1} is {result}.",
    ),
    Kind(
        ["search", "web_search", "search_web", "find", "lookup", "google"],
        ["Search the web", "Web search", "Finds pages on the internet", "Look things up on the internet"],
        [_p(["query", "q", "text", "terms"], "string", "What to search for", lambda d: words.anything(d, "search"))],
        [
            "Search for {0}.",
            "Look up {0}.",
            "Find something about {0}.",
            "Search the web for {0}.",
            "What can you find about {0}?",
            "Please search {0}.",
            "Can you look up {0} for me?",
            "I want to know about {0}. Search for it.",
            "Do a search for {0}.",
        ],
        [
            _PLEASE + "[search|search for|google|look for|search the internet for|search online for|look up] {0}"
            + _ASKED,
            _PLEASE + "[find|find out|get|look for] [information|facts|news|pages|articles|more|results] "
            "[about|on|for] {0}" + _ASKED,
            "[What|Which pages|What news] [does the web say|does the internet say|is there|can be found] about {0}?",
            "[Google|Search|Web search|Look up|Internet search]: {0}",
            "[Make|Run|Start|Do] a [web |]search [for|about|on] {0}" + _ASKED,
            "[I am looking for|I am interested in|I want to read about|I want to learn about] {0}. [Search|Look it up|"
            "Find it|Search the web].",
            "[Is there|Do you find] anything [about|on] {0}[| on the web| online]?",
        ],
        lambda d: {"hits": d.number(1, 900)},
        "I found {hits} results for {0}.",
    ),
    Kind(
        ["send_message", "message", "send_text", "write_message", "send_email", "notify"],
        ["Send a message to a person", "Sends a text", "Write to someone", "Deliver a message"],
        [
            _p(["to", "recipient", "person", "receiver"], "string", "Who gets it", lambda d: words.name(d, "to")),
            _p(["text", "message", "body", "content"], "string", "What it says", _errand),
        ],
        [
            "Tell {0} to {1}.",
            "Send {0} the message: {1}",
            "Write to {0}: {1}",
            "Send a message to {0} saying {1}.",
            "Message {0}: {1}",
            "Please text {0}: {1}",
            "Let {0} know: {1}",
            "Ask {0} to {1}.",
            "Send this to {0}: {1}",
        ],
        [
            _PLEASE + "[tell|remind|order|beg|urge|want|instruct] {0} to {1}" + _SOON + ".",
            _PLEASE + "[send|write|give|email|forward] {0} [this|this message|the text|a message|a note|an email|a "
            "mail]: {1}",
            _PLEASE + "[send|write|email|forward|pass] [a message|a note|an email|a text|a mail] to {0}[: | that "
            "says: | with the text: | with the words: | saying: ]{1}",
            "[Text|Mail|Email|Write|Notify|Inform|Contact|Ping] {0}: {1}",
            "[Message|Note|Mail|Text|Email] [to|for] {0}: {1}",
            "{0} [should|must|has to|needs to] {1}. [Tell them|Send a message|Write that|Let them know].",
            "[Send|Write] [\"{1}\"|'{1}'] to {0}" + _SOON + ".",
        ],
        lambda d: {"status": "sent"},
        "I sent the message to {0}.",
    ),
    Kind(
        ["set_timer", "timer", "start_timer", "countdown", "create_timer"],
        ["Start a timer", "Counts minutes down", "Sets a kitchen timer", "Rings after some minutes"],
        [_p(["minutes", "mins", "duration", "time"], "integer", "Minutes", lambda d: d.number(1, 90))],
        [
            "Set a timer for {0} minutes.",
            "Start a timer of {0} minutes.",
            "Timer: {0} minutes",
            "Wake me in {0} minutes.",
            "Remind me in {0} minutes.",
            "I need a timer for {0} minutes.",
            "Count down {0} minutes.",
            "Please set the timer to {0} minutes.",
        ],
        [
            _PLEASE + "[set|start|make|begin|run|create] [a|the|a new|another] [timer|countdown|clock] "
            "[of|for|with|over] {0} [minutes|min]" + _ASKED,
            _PLEASE + "[wake|call|alert|warn|ring] me [in|after] {0} [minutes|min]" + _SOON + "[.|?]",
            "[Set|Start|Run|Begin|Make] a {0} minute [timer|countdown]" + _END + ".",
            "[My egg needs|The cake needs|My tea needs|The pasta takes|The pizza takes] {0} minutes. [Set a "
            "timer|Start the timer|Start the clock].",
            "[Timer|Countdown|Alarm] [for|of|in] {0} [minutes|min][|, please|.]",
            "[Tell me|Let me know|Say something] when {0} minutes [are over|have passed|are up].",
        ],
        lambda d: {"status": "started"},
        "The timer runs for {0} minutes.",
    ),
    Kind(
        ["set_light", "light", "switch_light", "lamp", "control_light"],
        ["Switch a light on or off", "Controls the lights", "Turns lights on and off", "Lights of a room"],
        [
            _p(
                ["room", "where", "place"],
                "string",
                "Room",
                lambda d: d.pick(ROOMS, "room") if d.chance(0.6) else words.anything(d, "room"),
            ),
            _p(["on", "state", "enabled"], "boolean", "True for on", lambda d: d.chance(0.5)),
        ],
        [
            "Turn {1} the light in the {0}.",
            "Switch {1} the {0} light.",
            "Light {1} in the {0}.",
            "Please turn the {0} light {1}.",
            "The light in the {0} should be {1}.",
            "Make the light in the {0} go {1}.",
            "Turn the lights in the {0} {1}.",
            "{0} light {1}",
        ],
        [
            _PLEASE + "[turn|switch|put] {1} the [light|lights|lamp|lamps] [in|of] the {0}" + _ASKED,
            _PLEASE + "[turn|switch|put] the [light|lights|lamp|lamps] [in|of] the {0} {1}" + _ASKED,
            _PLEASE + "[turn|switch|put] the {0} [light|lights|lamp|lamps] {1}" + _ASKED,
            "[I want|I need] the {0} [light|lights|lamp] {1}" + _END + ".",
            "[Lights|Lamp|Lamps] {1} in the {0}[|, please|.|!]",
            "The [lamp|lights|lamps] [in|of] the {0} [should be|must be|has to go|can go|should go] {1}.",
            "{0}: [light|lights|lamp] {1}[|, please|.]",
        ],
        lambda d: {"status": "ok"},
        "The light in the {0} is {1}.",
    ),
    Kind(
        ["play_music", "play", "play_song", "music", "start_music"],
        ["Play music of an artist", "Music player", "Plays songs", "Starts music"],
        [_p(["artist", "name", "singer", "band"], "string", "Artist", lambda d: words.name(d, "artist"))],
        [
            "Play something by {0}.",
            "Play music by {0}.",
            "Put on {0}.",
            "I want to hear {0}.",
            "Play a song of {0}.",
            "Let me listen to {0}.",
            "Start some music by {0}.",
            "Can you play {0}?",
        ],
        [
            _PLEASE + "[play|start|put on] [me |us |][a song|some music|music|songs|the songs|an album|a tune|the "
            "music|some songs|something] [by|from] {0}" + _ASKED,
            _PLEASE + "[play|start|put on|turn on] {0}" + _ASKED,
            _PLEASE + "[play|put on|start] [a song|a tune|an album|a record|the music|songs] of {0}" + _ASKED,
            "[I want to listen to|I would like to hear|I feel like hearing|Let us hear|We want to hear|Let me hear] "
            "[|some |songs by |music by ]{0}[|, please| now].",
            "[Music|Songs|A song|An album|A tune] [by|from] {0}[|, please|.|!]",
            "[Do you have|Have you got|Is there] [music|a song|anything] by {0}? [Play it|Put it on|Start it].",
            "[My favourite singer|The best band|My favourite band] is {0}. [Play it|Put on a song|Play something].",
        ],
        lambda d: {"playing": d.any(words.THINGS)},
        "Now playing {playing} by {0}.",
    ),
    Kind(
        ["read_file", "open_file", "cat", "get_file", "file_read", "view_file"],
        ["Read a file", "Returns the contents of a file", "Opens a file and shows it", "File reader"],
        [_p(["path", "file", "filename", "file_path"], "string", "Path of the file", _path)],
        [
            "Read {0}.",
            "What is in {0}?",
            "Show me {0}.",
            "Open the file {0}.",
            "Read the file {0}.",
            "What does {0} say?",
            "Print {0}.",
            "Please open {0} and tell me what it says.",
            "Look into {0}.",
            "Show the contents of {0}.",
        ],
        [
            _PLEASE + "[open|show|print|view|display|look at|check|inspect|load] [|the file |my file |the contents of "
            "|what is in ]{0}" + _ASKED,
            "[What|Which text] [stands|is written|is there|is stored|do you find] in [|the file ]{0}?",
            _NEED + " [the contents of|the text of|what is in|what stands in] {0}" + _END + ".",
            "[Have a look at|Take a look at|Go through|Look inside] {0}" + _END + ".",
            "[Contents of|Text of|File|Open]: {0}",
        ],
        lambda d: {"content": words.sentence(d, 3, 6)},
        "The file says: {content}",
    ),
    Kind(
        ["run_command", "bash", "shell", "exec", "execute", "terminal"],
        ["Run a shell command", "Executes a command", "A terminal", "Runs programs in a shell"],
        [_p(["command", "cmd", "script"], "string", "The command", _command)],
        [
            "Run {0}.",
            "Execute {0}.",
            "Run the command {0}.",
            "Please run {0} in the shell.",
            "Type {0} into the terminal.",
            "Start {0}.",
            "Do {0} in the shell.",
            "Can you run {0}?",
        ],
        [
            _PLEASE + "[run|execute|launch|call|invoke|try|use] [|the command |this command: |this: |the program ]{0}"
            "[| in the shell| in a shell| in the terminal| on the command line]" + _ASKED,
            _PLEASE + "[launch|fire up|start up|boot|kick off|begin|perform] {0}" + _ASKED,
            "[What is the output of|What does the shell say to|What happens with|What comes out of] {0}?",
            "[Shell|Terminal|Command|Bash|Execute|Run]: {0}",
            "[Enter|Type|Put|Give] {0} [in|into|to] [the shell|the terminal|the command line|bash]" + _END + ".",
            _NEED + " the output of {0}" + _END + ".",
        ],
        lambda d: {"output": words.sentence(d, 2, 4)},
        "The output is: {output}",
    ),
    Kind(
        ["get_price", "price", "price_of", "lookup_price", "check_price"],
        ["Get the price of a thing", "What something costs", "Price list", "Looks prices up"],
        [_p(["item", "product", "thing", "article"], "string", "The thing", lambda d: d.pick(words.THINGS, "price"))],
        [
            "How much is a {0}?",
            "What does a {0} cost?",
            "Price of a {0}?",
            "What is the price of a {0}?",
            "Tell me what a {0} costs.",
            "How much do I pay for a {0}?",
            "Check the price of a {0}.",
            "I want to buy a {0}. How much is it?",
        ],
        [
            "[How much|What] [does|would|will] [a|one|the|this] {0} [cost|be worth|cost me]?",
            _PLEASE + "[check|look up|find|get|tell me|find out] [the price|the cost|the prices] of [a|one|the] {0}"
            + _ASKED,
            _NEED + " [the price|the cost] of [a|one|the] {0}" + _END + ".",
            "[What do I have to pay|How much must I pay|What do they want|How much money do I need] for [a|one] {0}?",
            "[Is a {0} expensive|Is a {0} cheap|Can I afford a {0}]? [How much is it|What does it cost]?",
            "[Price|Cost] [for|of] [a|one|the] {0}[?|, please|.|]",
            "[I am going to buy|We need|My aunt wants|I must buy] a {0}. [What does it cost|What is the price]?",
        ],
        lambda d: {"price": d.number(1, 500)},
        "A {0} costs {price} euros.",
    ),
    Kind(
        ["translate", "translate_word", "translator", "to_language"],
        ["Translate a word", "Translates into another language", "Dictionary of languages", "Word translator"],
        [
            _p(["word", "text", "term"], "string", "Word", lambda d: words.anything(d, "word")),
            _p(["language", "target", "lang"], "string", "Language", lambda d: d.any(LANGUAGES), TONGUES),
        ],
        [
            "Translate {0} to {1}.",
            "What is {0} in {1}?",
            "How do you say {0} in {1}?",
            "Say {0} in {1}.",
            "{0} in {1}?",
            "I need the {1} word for {0}.",
            "Please translate the word {0} into {1}.",
            "What is the {1} for {0}?",
        ],
        [
            _PLEASE + "[translate|turn|put] [|the word |the words |the text ][{0}|\"{0}\"] [into|to] {1}" + _ASKED,
            "[How do I|How does one|How would you|How do people] [say|write|call] [{0}|\"{0}\"] in {1}?",
            "[What|Which word] [do they say|do people say|does one say] for {0} in {1}?",
            "[Give me|Tell me|Find|Get] the {1} [word|words|term|name|translation] [for|of] {0}" + _END + ".",
            "[In {1}, what is|In {1}: |To {1}: |{1} for |{1} word for ]{0}[|?]",
            "[Translation|Translate]: {0} [to|into] {1}",
        ],
        lambda d: {"translation": words.invented(d).lower()},
        "In {1}, {0} is {translation}.",
    ),
    Kind(
        ["create_event", "add_event", "calendar", "schedule", "new_appointment"],
        ["Put an event into the calendar", "Adds an appointment", "Calendar entries", "Plans something for a day"],
        [
            _p(["title", "name", "event"], "string", "Title", lambda d: words.anything(d, "title")),
            _p(["day", "date", "weekday"], "string", "Day", lambda d: d.any(DAYS), DAYS),
        ],
        [
            "Put {0} on {1} into my calendar.",
            "Schedule {0} for {1}.",
            "Add {0} on {1}.",
            "I have {0} on {1}. Note it down.",
            "Plan {0} for {1}.",
            "Create an event: {0} on {1}.",
            "Enter {0} for {1}.",
            "Remind me of {0} on {1}.",
        ],
        [
            _PLEASE + "[schedule|plan|add|enter|book|note|write down|arrange] {0} [on|for] {1}" + _ASKED,
            _PLEASE + "[make|create|add|set up|book] [an event|an appointment|an entry|a date|a meeting] "
            "[called|named|for|about] {0} on {1}" + _ASKED,
            "[On {1} I have|On {1} there is|{1} is the day of|On {1} we have] {0}. [Write it down|Put it in my "
            "calendar|Add it|Note that].",
            "[Calendar|New event|Appointment|Event]: {0}[, on |, | on ]{1}",
            "{1}: {0}. [Add it to my calendar|Put that in the calendar|Make an appointment].",
        ],
        lambda d: {"status": "saved"},
        "I put {0} on {1} into your calendar.",
    ),
    Kind(
        ["find_phone", "phone_book", "get_phone", "contact", "lookup_contact"],
        ["Find the phone number of a person", "Phone book", "Phone numbers of people", "Looks up a contact"],
        [_p(["name", "person", "who"], "string", "Name", lambda d: words.name(d, "phone"))],
        [
            "What is the phone number of {0}?",
            "Find the number of {0}.",
            "How can I call {0}?",
            "Phone number of {0}?",
            "Give me the phone of {0}.",
            "I want to call {0}. What is the number?",
            "Look up the phone number of {0}.",
            "Which phone number does {0} have?",
        ],
        [
            _PLEASE + "[find|look up|get|tell me|search|give me] [the number|the phone number|the telephone number|the "
            "contact] of {0}" + _ASKED,
            "[What|Which] [number|telephone number] [does {0} have|has {0}|belongs to {0}|is {0}'s]?",
            _NEED + " [the phone number of {0}|{0}'s number|{0}'s phone number|the number of {0}]" + _END + ".",
            "[How do I reach|How can I phone|How do I call|Where can I reach] {0}?",
            "[I have to|I must|I need to|I'd like to|We have to] [call|phone|ring|reach] {0}. [Which number is "
            "it|What is the number|Find the number][?|.]",
            "[Number|Phone|Telephone|Contact] of {0}[?|, please|.|]",
        ],
        lambda d: {"phone": str(d.number(10000, 99999))},
        "The phone number of {0} is {phone}.",
    ),
    Kind(
        ["write_file", "save_file", "create_file", "file_write", "store_file"],
        ["Write text into a file", "Saves a file", "Creates a file with some text", "File writer"],
        [
            _p(["path", "file", "filename", "file_path"], "string", "Path of the file", _path),
            _p(["text", "content", "data", "body"], "string", "What to write", lambda d: words.anything(d, "written")),
        ],
        [],
        [
            _PLEASE + "[write|save|store|put] [{1}|\"{1}\"|the text {1}|the words {1}] [to|into|in] [|the file ]{0}"
            + _ASKED,
            _PLEASE + "[create|make|write] [the file|a file called|a file named] {0} [with|that says|containing] "
            "[{1}|\"{1}\"|the text {1}]" + _ASKED,
            "[Save|Write|New file|Store]: {0}, [with the text|content|text]: {1}",
        ],
        lambda d: {"bytes": d.number(3, 900)},
        "I wrote {bytes} bytes to {0}.",
    ),
    Kind(
        ["list_files", "ls", "list_dir", "list_folder", "directory", "list_directory"],
        ["List the files of a folder", "Shows what is in a folder", "Folder contents", "Names of files"],
        [
            _p(
                ["folder", "path", "dir", "directory"],
                "string",
                "The folder",
                lambda d: d.made(lambda: f"{d.any(['', '/', '/home/', '/tmp/'])}{d.any(words.ALL)}/", "folder"),
            )
        ],
        [],
        [
            _PLEASE + "[list|show|name|count] [the files|all files|everything|what is] in [|the folder |the directory ]"
            "{0}" + _ASKED,
            "[Which|What] files [are|lie|do you see|are there] in [|the folder |the directory ]{0}?",
            "[What does the folder {0} hold?|What is inside the folder {0}?|Files of {0}|Folder: {0}|Directory: {0}]",
            _NEED + " [the list of files|the names of the files|the files] in {0}" + _END + ".",
        ],
        lambda d: {"files": d.number(1, 90)},
        "There are {files} files in {0}.",
    ),
    Kind(
        ["set_alarm", "alarm", "wake_up", "create_alarm", "add_alarm"],
        ["Set an alarm", "Alarm clock", "Rings at a time of day", "Wakes somebody up"],
        [_p(["time", "at", "when", "hour"], "string", "Time of day", _clock)],
        [],
        [
            _PLEASE + "[set|make|create|add|start] [an alarm|the alarm|my alarm|an alarm clock] [for|at] {0}" + _ASKED,
            _PLEASE + "[wake me|wake me up|wake us|get me up] at {0}" + _SOON + "[.|?]",
            "[I have to get up|I must be up|I want to get up|I get up] at {0}. [Set an alarm|Wake me|Set the alarm].",
            "[Alarm|Alarm clock|Wake-up call] [at|for] {0}[|, please|.]",
        ],
        lambda d: {"status": "ok"},
        "The alarm rings at {0}.",
    ),
    Kind(
        ["convert_money", "exchange", "currency", "convert_currency", "money_changer"],
        ["Convert money", "Exchange rates", "Changes one currency into another", "Currency converter"],
        [
            _p(["amount", "value", "sum"], "integer", "How much", lambda d: d.number(1, 9999)),
            _p(["from", "source", "have"], "string", "Currency", lambda d: d.any(MONEY[:4]), MONEY[:4]),
            _p(["to", "target", "want"], "string", "Currency wanted", lambda d: d.any(MONEY[4:]), MONEY[4:]),
        ],
        [],
        [
            _PLEASE + "[convert|change|exchange|turn] {0} {1} [to|into|for] {2}" + _ASKED,
            "[How many|How much in] {2} [are|do I get for|is|make] {0} {1}?",
            "[What are|What is|How much are] {0} {1} in {2}?",
            "{0} {1} in {2}[|?|, please|.]",
            "[I have|We have|She has] {0} {1}. How many {2} [is that|are that|do we get]?",
        ],
        lambda d: {"result": d.number(1, 9999)},
        "{0} {1} are {result} {2}.",
    ),
    Kind(
        ["distance", "get_distance", "how_far", "route", "measure_route"],
        ["Distance between two cities", "How far two places are apart", "Length of a route", "Kilometres on the road"],
        [
            _p(["from", "start", "origin", "a"], "string", "First city", lambda d: words.city(d, "from")),
            _p(["to", "end", "goal", "b"], "string", "Second city", lambda d: words.city(d, "goal")),
        ],
        [],
        [
            "How far is it from {0} to {1}?",
            "[What is|Tell me|Find|Look up|Give me|Check] the distance [from {0} to {1}|between {0} and {1}][.|?]",
            _PLEASE + "[measure|find|compute|calculate|check] [the route|the way|the distance] from {0} to {1}"
            + _ASKED,
            "[How many kilometres are there|How many miles are there|How long is the road|How long is the way] from "
            "{0} to {1}?",
            "[Distance|Route|Kilometres]: {0} [to|-] {1}",
            "[I drive|We walk|I go|I travel|She flies] from {0} to {1}. [How far is that|What is the distance]?",
        ],
        lambda d: {"km": d.number(10, 9000)},
        "It is {km} kilometres from {0} to {1}.",
    ),
    Kind(
        ["add_to_list", "shopping_list", "add_item", "list_add", "buy_later"],
        ["Add something to the shopping list", "Shopping list", "Notes what has to be bought", "Groceries"],
        [
            _p(["item", "thing", "what", "product"], "string", "What", lambda d: d.pick(words.FOODS, "shop")),
            _p(["count", "amount", "number", "how_many"], "integer", "How many", lambda d: d.number(2, 60)),
        ],
        [],
        [
            _PLEASE + "[add|put|write] {1} {0} [to|on|onto] [my|the|our] [shopping list|list]" + _ASKED,
            "[I need|We need|We are out of|I ran out of] {0}: [put|add|note] {1} on the [list|shopping list].",
            "[Shopping list|Shopping|Groceries|To buy]: {1} {0}",
            "[Remember to buy|Do not forget to buy|We have to buy|I must buy] {1} {0}" + _END + ".",
        ],
        lambda d: {"status": "saved"},
        "I put {1} {0} on the list.",
    ),
    Kind(
        ["set_volume", "volume", "sound", "loudness", "change_volume"],
        ["Set the volume", "How loud the speaker is", "Changes the loudness", "Volume in percent"],
        [_p(["percent", "level", "volume", "value"], "integer", "Percent", lambda d: d.number(1, 99))],
        [],
        [
            _PLEASE + "[set|turn|change|put|bring] the [volume|sound|loudness|speaker] to {0}[| percent| %]" + _ASKED,
            "[Volume|Sound|Loudness] [to|at|on|:] {0}[| percent| %][|, please|.]",
            "[It is too loud|It is too quiet|I hear nothing|That is too loud]. [Set|Turn] the [volume|sound] to "
            "{0}[| percent].",
            "[Make it louder|Make it quieter|Louder|Quieter][: |, ]{0} percent" + _END + ".",
        ],
        lambda d: {"status": "ok"},
        "The volume is {0} percent.",
    ),
    Kind(
        ["book_table", "reserve_table", "reservation", "restaurant", "reserve"],
        ["Book a table in a restaurant", "Restaurant reservations", "Reserves a table", "Table booking"],
        [
            _p(["people", "guests", "persons", "seats"], "integer", "How many people", lambda d: d.number(2, 20)),
            _p(["day", "date", "weekday"], "string", "Day", lambda d: d.any(DAYS), DAYS),
        ],
        [],
        [
            _PLEASE + "[book|reserve|get|order] [a table|seats] for {0} [|people |persons |guests ]on {1}" + _ASKED,
            "[I need|We want|We would like|I want] a table for {0} [|people |guests ]on {1}" + _END + ".",
            "[Table|Reservation|Booking] for {0}[| people| guests], {1}[|, please|.]",
            "[On {1} we are|On {1} there will be] {0} people. [Book a table|Reserve a table|Get us a table].",
        ],
        lambda d: {"status": "saved"},
        "I booked a table for {0} on {1}.",
    ),
    Kind(
        ["define", "dictionary", "define_word", "meaning", "explain_word"],
        ["Explain what a word means", "Dictionary", "Meaning of a word", "Defines words"],
        [_p(["word", "term", "entry"], "string", "The word", lambda d: words.anything(d, "define"))],
        [],
        [
            _PLEASE + "[define|explain] the [word|term|words] [{0}|\"{0}\"]" + _ASKED,
            "[What does|What's the meaning of|What is the definition of|What is the meaning of] the word [{0}|\"{0}\"]"
            "[| mean]?",
            "[Definition|Meaning|Dictionary|Define]: {0}",
            _NEED + " the [meaning|definition] of [{0}|the word {0}|\"{0}\"]" + _END + ".",
        ],
        lambda d: {"meaning": words.sentence(d, 3, 5)},
        "It means: {meaning}",
    ),
    Kind(
        ["roll_dice", "dice", "random_number", "roll", "random"],
        ["Roll a die", "A random number", "Throws dice", "Draws a number by chance"],
        [_p(["sides", "max", "faces", "highest"], "integer", "How many sides", lambda d: d.number(3, 100))],
        [],
        [
            _PLEASE + "[roll|throw|cast] a [die|dice] with {0} [sides|faces]" + _ASKED,
            _PLEASE + "[pick|choose|draw|give me|make up] a [random number|number] [from 1 to|between 1 and|up to] {0}"
            + _ASKED,
            "[Random number|A number|Any number] [up to|from 1 to|between 1 and] {0}[|, please|.]",
            "[Roll|Throw] a {0}-sided die" + _END + ".",
        ],
        lambda d: {"number": d.number(1, 100)},
        "The number is {number}.",
    ),
    Kind(
        ["get_stock", "stock_price", "stock", "share_price", "quote"],
        ["Price of a share", "Stock market", "What a company's shares cost", "Share prices"],
        [_p(["company", "symbol", "name", "share"], "string", "Company", lambda d: words.name(d, "company"))],
        [],
        [
            "[How are|What are|How do|Where are] the [shares|stocks] of {0}[| doing| today| now]?",
            _PLEASE + "[check|look up|get|find|tell me] the [stock|share price|shares|stock price] of {0}" + _ASKED,
            "[Share price|Stock|Stock price|Shares] of {0}[?|, please|.|]",
            _NEED + " the [stock price|share price|value of a share] of {0}" + _END + ".",
            "[What does|How much does] a [share|stock] of {0} cost?",
        ],
        lambda d: {"price": d.number(1, 900)},
        "A share of {0} costs {price} euros.",
    ),
    Kind(
        ["delete_file", "remove_file", "rm", "erase", "file_delete"],
        ["Delete a file", "Removes a file", "Erases a file for good", "File remover"],
        [_p(["path", "file", "filename", "target"], "string", "Path of the file", _path)],
        [],
        [
            _PLEASE + "[delete|remove|erase|throw away|get rid of] [|the file |my file ]{0}" + _ASKED,
            "[I do not need|We no longer need|Nobody needs|I am done with] {0}[| any more]. [Delete it|Remove "
            "it|Erase it].",
            "[Delete|Remove|Erase]: {0}",
            "[The file|My file] {0} [can go|must go|should be deleted|has to be removed]" + _SOON + ".",
        ],
        lambda d: {"status": "ok"},
        "I deleted {0}.",
    ),
]

# Which tool might do what another is for: then it is not said that there is none.
_SEARCH = {"get_price", "define", "get_stock", "distance", "get_weather", "get_time", "find_phone", "translate"}
_SHELL = {"read_file", "write_file", "list_files", "delete_file", "search"}


def could(kinds, wanted):
    names = {k.names[0] for k in kinds}
    return "search" in names and wanted.names[0] in _SEARCH or "run_command" in names and wanted.names[0] in _SHELL
