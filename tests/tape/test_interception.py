"""Members that are replaced while somebody needs that, and points."""

from jaxgrad.tape import interception


class Base:
    def inherited(self):
        return "inherited"


class Owner(Base):
    def defined(self):
        return "defined"


def stand_in(self):
    return "stand-in"


def members_of_owner():
    members = interception.Members()
    for name in ("inherited", "defined", "missing"):
        members.add(Owner, name, stand_in)
    return members


def test_members_are_replaced_until_the_last_user_leaves():
    before, members = dict(vars(Owner)), members_of_owner()
    members.replace("first")
    members.replace("second")
    members.restore("first")
    assert Owner().inherited() == Owner().defined() == Owner().missing() == "stand-in"
    members.restore("second")
    assert dict(vars(Owner)) == before
    assert Owner().inherited() == "inherited"


def test_what_a_program_puts_in_the_place_of_a_stand_in_stays(monkeypatch):
    monkeypatch.setattr(Owner, "defined", Owner.defined)  # put back at the end
    members = members_of_owner()
    members.replace("user")
    Owner.defined = lambda self: "of the program"
    members.restore("user")
    assert Owner().defined() == "of the program"


def test_what_an_interrupt_left_is_put_back():
    before, members = dict(vars(Owner)), members_of_owner()
    members.members[0].exchange(Base.inherited, stand_in)  # and an interrupt
    members.restore("user")
    assert dict(vars(Owner)) == before


def test_a_point_is_free_after_its_last_user():
    def moved(tensor, donor):
        """Look at a tensor that is given other memory."""

    interception.intercept(moved=moved)
    interception.intercept(moved=moved)
    interception.release("moved")
    assert interception.moved is moved
    interception.release("moved")
    assert interception.moved is None


def test_watchers_look_on_before_what_is_installed():
    calls = []
    interception.intercept(moved=lambda *tensors: calls.append("installed"))
    with interception.watch(moved=lambda *tensors: calls.append("watcher")):
        interception.moved(None, None)
    interception.moved(None, None)
    interception.release("moved")
    assert calls == ["watcher", "installed", "installed"]
