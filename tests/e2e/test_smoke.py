import openai

from tests.support.stack import Stack


def test_a_question_goes_where_the_answers_send_it(stack: Stack) -> None:
    client = openai.OpenAI(base_url=stack.base + "/v1", api_key="unused")
    answer = client.chat.completions.create(
        model="pointsman/auto", messages=[{"role": "user", "content": "How do I reverse a linked list in Java?"}]
    )
    assert answer.model == "qwen3-coder-30b"
