"""Plan first, build after you have approved the plan: the plan agent writes its plan file and nothing else."""

import turnkeeper


async def approve(request: turnkeeper.QuestionRequest) -> turnkeeper.QuestionReply:
    """Approve the plan. A program would show the file first; with ``question=None`` the question waits in the log."""
    print("asked:", request.questions[0].header)
    return turnkeeper.QuestionReply(answers=(("Yes",),))


model = turnkeeper.Scripted()  # So that this runs without a key.
settings = turnkeeper.Settings(question=approve, titles=False)
with turnkeeper.open_sync("memory:", provider=model, settings=settings) as tk:
    session = tk.create()
    plan = tk.plan_file(session.id)
    model.calls("write", filePath="tides.py", content="HIGH = 6").then()  # Refused: this agent only plans.
    model.calls("write", filePath=str(plan), content="1. Write tides.py").then().calls("plan_exit").then()
    model.calls("write", filePath="tides.py", content="HIGH = 6").then().says("Built as planned.")
    tk.ask("Add the tides.", session=session.id, agent="plan")
    for message in tk.iter_messages(session.id, reverse=False):
        if isinstance(message.info, turnkeeper.AssistantMessage):
            for part in message.parts:
                match part:
                    case turnkeeper.ToolPart(tool=tool, state=turnkeeper.ToolCompleted()):
                        print(f"{message.info.agent}: {tool}: done")
                    case turnkeeper.ToolPart(tool=tool):
                        print(f"{message.info.agent}: {tool}: refused")
                    case turnkeeper.TextPart(text=text):
                        print(f"{message.info.agent}: {text}")
