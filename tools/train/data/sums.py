"""Adding and subtracting."""

from .ask import Ask
from .dice import besides, is_held, ways
from .words import FOODS, name

PLUS = ways(
    "[What is|What's|How much is|Calculate|Compute|Work out|Solve|Tell me|What does|Please calculate|Can you "
    "compute] {a} [plus|+] {b}?",
    "{a}[ + |+| plus ]{b}[| =| = ?|=?|?| is what?| equals?| makes?]",
    "[|Please |Can you |Could you ]add {a} [and|to|plus] {b}[|.|?]",
    "[What is|Tell me|Calculate|Give me] the sum of {a} and {b}.",
    "[Sum of|The sum of] {a} and {b}?",
    "{a} and {b} [make|together make|add up to] what?",
    "What do [you|I|we] get [when|if] [you|I|we] add {a} and {b}?",
    "I have {a} and get {b} more. How many [do I have|are that|is that]?",
    "If I add {b} to {a}, what [do I get|is the result]?",
    "How much [do|are] {a} and {b}[| make| together]?",
)
MINUS = ways(
    "[What is|What's|How much is|Calculate|Compute|Work out|Solve|Tell me|What does|Please calculate|Can you "
    "compute] {a} [minus|-] {b}?",
    "{a}[ - |-| minus ]{b}[| =| = ?|=?|?| is what?| equals?| makes?]",
    "[|Please |Can you |Could you ][subtract|take] {b} from {a}[|.|?]",
    "[What is|Tell me|Calculate|Give me] the difference of {a} and {b}.",
    "Take {b} [away |]from {a}.",
    "What is left [when|if] [you|I|we] take {b} [away |]from {a}?",
    "I have {a} and [lose|give away|spend] {b}. How many [are left|remain|do I have]?",
    "If I take {b} from {a}, what [do I get|is left|remains]?",
    "{a} less {b}?",
    "How much is left of {a} [after|without] {b}?",
)
MORE_PLUS = besides(
    PLUS,
    ways(
        "[Find|Compute|Work out|Say|I need|I want|I'd like to know|Please tell me|Can you tell me] the [sum|total] of "
        "{a} and {b}[|.|, please.]",
        "[The total|Total|Sum] of {a} and {b}[|?|, please.]",
        "[Increase|Raise] {a} by {b}[|.]",
        "{a} [increased by|added to|together with|and then] {b}[?| is what?| makes?]",
        "[What is|How much is|Say] {b} more than {a}[?|]",
        "[Put|Count] {a} and {b} together[|.|, please.]",
        "[Subtraction is easy|Now an addition|Here is a sum|An easy one]: {a} + {b}[|?]",
    ),
)
MORE_MINUS = besides(
    MINUS,
    ways(
        "[Find|Compute|Work out|Say|I need|I want|I'd like to know|Please tell me|Can you tell me] the difference "
        "[of|between] {a} and {b}[|.|, please.]",
        "[The difference|Difference] [of|between] {a} and {b}[|?|, please.]",
        "[What is|What's|Calculate|Tell me|Give me] the difference between {a} and {b}[?|.]",
        "[Decrease|Reduce|Lower] {a} by {b}[|.]",
        "{a} [decreased by|reduced by|without|take away] {b}[?| is what?| makes?]",
        "[What is|How much is|Say] {b} less than {a}[?|]",
        "[From {a}, subtract|From {a} take|Out of {a} take] {b}[|.|, please.]",
        "[How much more|How much larger] is {a} than {b}?",
        "[Addition is easy|Now a subtraction|Here is a difference|An easy one]: {a} - {b}[|?]",
    ),
)
STORY_PLUS = [
    "{n} has {a} {f} and buys {b} more. How many {f} does {n} have?",
    "There are {a} {f} in one bag and {b} in another. How many {f} are there?",
    "{n} ate {a} {f} yesterday and {b} today. How many {f} is that?",
    "{n} picks {a} {f}, then {b} more. How many {f}?",
    "A box holds {a} {f}. {n} adds {b}. How many {f} are in it?",
    "{n} has {a} {f}, and I have {b}. How many {f} do we have?",
    "First {a} {f}, then {b} {f}. How many in all?",
    "{n} found {a} {f} and got {b} as a gift. How many {f} now?",
]
STORY_MINUS = [
    "{n} has {a} {f} and eats {b}. How many {f} are left?",
    "There were {a} {f}. {n} took {b}. How many {f} are left?",
    "{n} had {a} {f} and sold {b}. How many {f} remain?",
    "Of {a} {f}, {b} are bad. How many {f} are good?",
    "{n} gives away {b} of {a} {f}. How many {f} does {n} keep?",
    "A shop had {a} {f} and sold {b}. How many {f} are left?",
    "{n} lost {b} of {a} {f}. How many {f} are left?",
    "From {a} {f} I take {b}. How many {f} stay?",
]


def _think_plus(a, b):
    ones = a % 10 + b % 10
    tens = a // 10 + b // 10 + ones // 10
    carried = f" plus the carried 1" if ones >= 10 else ""
    return f"Ones: {a % 10} + {b % 10} = {ones}. Tens: {a // 10} + {b // 10}{carried} = {tens}. So {a} + {b} = {a + b}."


def _think_minus(a, b):
    if b > a:
        return f"{b} is more than {a}, so the answer is below zero. {b} - {a} = {b - a}. So {a} - {b} = {a - b}."
    x, y = a % 10, b % 10
    if x >= y:
        return f"Ones: {x} - {y} = {x - y}. Tens: {a // 10} - {b // 10} = {a // 10 - b // 10}. So {a} - {b} = {a - b}."
    return (
        f"Ones: {x + 10} - {y} = {x + 10 - y}, borrowing 1. Tens: {a // 10} - 1 - {b // 10} = "
        f"{a // 10 - 1 - b // 10}. So {a} - {b} = {a - b}."
    )


def sums(dice):
    plus = dice.chance(0.5)
    top = dice.any([99, 99, 99, 99, 20])
    a, b = dice.made(lambda: (dice.number(0, top), dice.number(0, top)))
    if not plus and b > a and dice.chance(0.85) and is_held((b, a)) == dice.held:
        a, b = b, a
    result = a + b if plus else a - b
    think = (_think_plus if plus else _think_minus)(a, b)
    if dice.chance(0.2) and result >= 0:
        food = dice.any(FOODS)
        food = food if food.endswith("s") else "apples"
        text = dice.pick(STORY_PLUS if plus else STORY_MINUS).format(a=a, b=b, n=name(dice), f=food)
        return Ask(
            text, f"{a} {'+' if plus else '-'} {b} = {result}, so {result} {food}.", [str(result)], think, str(result)
        )
    known = dice.chance(0.6 if dice.held else 0.4)
    wording = dice.pick((PLUS if plus else MINUS) if known else (MORE_PLUS if plus else MORE_MINUS))
    text = wording.format(a=a, b=b)
    return Ask(text, f"{a} {'+' if plus else '-'} {b} = {result}.", [str(result)], think, str(result))


def _columns(a, b, plus):
    """Digit by digit, as on paper: too much to be known at once, but each step is small."""
    parts, carry = [], 0
    for i, column in enumerate(("ones", "tens", "hundreds")):
        x, y = a // 10**i % 10, b // 10**i % 10
        if plus:
            total = x + y + carry
            parts.append(f"{column} {x} + {y}{' + 1' if carry else ''} = {total}")
            carry = total // 10
        else:
            owed = 10 if x - y - carry < 0 else 0
            parts.append(f"{column} {x + owed} - {y}{' - 1' if carry else ''} = {x + owed - y - carry}")
            carry = owed // 10
    return ", ".join(parts)


def big(dice):
    """Numbers of three digits, or one of three and one of fewer."""
    plus = dice.chance(0.5)

    def make():
        pair = [dice.number(100, 999), dice.number(*dice.any([(100, 999), (100, 999), (1, 99)]))]
        return tuple(sorted(pair, reverse=not plus or dice.chance(0.6)))

    a, b = dice.made(make, "big")
    sign, result = "+" if plus else "-", a + b if plus else a - b
    known = dice.chance(0.5)
    wording = dice.pick((PLUS if plus else MINUS) if known else (MORE_PLUS if plus else MORE_MINUS))
    steps = _columns(a, b, plus)
    answer = f"{a} {sign} {b}: {steps}, so {a} {sign} {b} = {result}."
    return Ask(wording.format(a=a, b=b), answer, [f"= {result}"], steps[0].upper() + steps[1:] + ".", "")


HARD = ways(
    "[What is |How much is |Calculate |Compute |Work out |What's |Solve |Tell me |]{a} [*|x|times|multiplied "
    "by|divided by|/|:|"
    "to the power of|^|modulo] {b}[?|.|]",
    "[Multiply|Divide] {a} by {b}[|.|, please.]",
    "[What is|Calculate|Find|Tell me] the [product|quotient|square root|average|cube root] of {a} and {b}[?|.]",
    "[What is|How much is|Calculate] {b} percent of {a}[?|]",
    "[Is {a} prime?|Is {a} a prime number?|What are the factors of {a}?|What is the square root of {a}?|What is {a} "
    "squared?|How much is half of {a}?|Double {a}.]",
)
HARD_ANSWER = "I can only add and subtract numbers of up to three digits."


def hard(dice):
    """Sums of longer numbers, and what is no sum at all."""
    if dice.chance(0.5):
        a, b = (dice.number(*dice.any([(1000, 9999), (10000, 10**6), (10**6, 10**9)])) for _ in range(2))
        if dice.chance(0.3):
            b = dice.number(1, 999)
        if dice.chance(0.3):
            a, b = b, a
        plus, known = dice.chance(0.5), dice.chance(0.5)
        wording = dice.pick((PLUS if plus else MINUS) if known else (MORE_PLUS if plus else MORE_MINUS))
    else:
        wording = dice.pick(HARD)
        a, b = dice.number(0, 10 ** dice.number(1, 4)), dice.number(0, 10 ** dice.number(1, 3))
    return Ask(wording.format(a=a, b=b), HARD_ANSWER, ["only add"], "That is too hard for me.", "Unknown")
